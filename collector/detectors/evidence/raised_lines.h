// SPDX-License-Identifier: Apache-2.0
// The lines of a traceback in a finding: the user's, a library's below it, and the one that awaited
// the result of another process.
#pragma once

#include <string>
#include <vector>

#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/finding.h"

namespace ddpdoctor::detectors {

/// "rank 2 raised here".
std::string raised_here(const Traceback& traceback);

/// The quoted traceback that suspects of this line come from; nullptr if the rank itself raised.
const Traceback* quoted_at(const std::vector<Traceback>& all, const Suspect& suspect);

/// Another process raised: the line that awaited its result, and its pid.
void add_awaiting_line(const Traceback& quoted, Finding& finding);

/// The line of a library below the user's line, if the exception came from there.
void add_raiser(const Suspect& suspect, Finding& finding);

}  // namespace ddpdoctor::detectors
