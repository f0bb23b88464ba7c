// SPDX-License-Identifier: Apache-2.0
// Lines for findings of a log that name ranks but no line: those of its tracebacks.
#pragma once

#include <vector>

#include "collector/diagnosis/explain_away.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::diagnosis {

/// Adds the lines of the tracebacks of its ranks to a finding without a line: a log shows them,
/// whatever the exception was.
void tell_places_of_tracebacks(std::vector<Judged>& findings,
                               const graph::Examination& examination);

}  // namespace ddpdoctor::diagnosis
