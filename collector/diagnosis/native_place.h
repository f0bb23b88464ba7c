// SPDX-License-Identifier: Apache-2.0
// Places for findings that name ranks but no line of the user's: the Python function of a library
// that a rank is in, or the function of compiled code if its stack has no Python frame.
#pragma once

#include <vector>

#include "collector/diagnosis/explain_away.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::diagnosis {

/// Adds the place of the first culprit to findings that name ranks but no line; for a function of
/// compiled code, also what to capture to get the line. Other findings are unchanged.
void tell_native_places(std::vector<Judged>& findings, const graph::Examination& examination);

}  // namespace ddpdoctor::diagnosis
