// SPDX-License-Identifier: Apache-2.0
// The function of compiled code that a rank is in, when its stack has no Python frame.
#pragma once

#include <vector>

#include "collector/diagnosis/explain_away.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::diagnosis {

/// Adds the native function of the first culprit to findings that name ranks but no line, and says
/// what to capture to get the line. Other findings are unchanged.
void tell_native_places(std::vector<Judged>& findings, const graph::Examination& examination);

}  // namespace ddpdoctor::diagnosis
