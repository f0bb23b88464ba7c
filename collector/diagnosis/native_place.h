// SPDX-License-Identifier: Apache-2.0
// Lines for findings that name ranks but no line: the function of compiled code that a rank is in,
// when its stack has no Python frame, and the tracebacks of logs.
#pragma once

#include <vector>

#include "collector/diagnosis/explain_away.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::diagnosis {

/// Adds the native function of the first culprit to findings that name ranks but no line, and says
/// what to capture to get the line. Other findings are unchanged.
void tell_native_places(std::vector<Judged>& findings, const graph::Examination& examination);

/// Adds the lines of the tracebacks of its ranks to a finding without a line: a log shows them,
/// whatever the exception was.
void tell_places_of_tracebacks(std::vector<Judged>& findings,
                               const graph::Examination& examination);

}  // namespace ddpdoctor::diagnosis
