// SPDX-License-Identifier: Apache-2.0
// Where a rank stands when its stack has no Python frame: a function of compiled code.
#pragma once

#include <vector>

#include "collector/diagnosis/explain_away.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::diagnosis {

/// Gives findings that name ranks and no place the native function in which the first culprit
/// stands, and says what to capture for the line. Other findings stay as they are.
void tell_native_places(std::vector<Judged>& findings, const graph::Examination& examination);

}  // namespace ddpdoctor::diagnosis
