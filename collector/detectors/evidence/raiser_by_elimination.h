// SPDX-License-Identifier: Apache-2.0
// The rank of an exception in a log without labels, from the ranks that cannot have raised it.
#pragma once

#include <vector>

#include "collector/detectors/evidence/tracebacks.h"

namespace ddpdoctor::detectors {

/// All ranks but one still waited in a call when their watchdogs ended them, long after the
/// exception: the other rank raised it. Sets the rank of the tracebacks of that exception.
void name_raiser_by_elimination(const model::JobModel& job, std::vector<Traceback>& all);

}  // namespace ddpdoctor::detectors
