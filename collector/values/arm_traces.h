// SPDX-License-Identifier: Apache-2.0
// Finds locals that only one arm of a decision changes, such as `skipped += 1` in a handler. Their
// values still show whether a rank ran the arm when the test itself can no longer be evaluated.
#pragma once

#include <string>
#include <vector>

#include "collector/program/syntax/bindings.h"
#include "collector/program/syntax/decisions.h"
#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::values {

/// The names of locals that are assigned before the decision and the loops around it, and after
/// that only by the arm of this decision. `bindings` must be all bindings of the function.
std::vector<std::string> traces_of(const std::vector<program::Binding>& bindings,
                                   const program::Scope& function,
                                   const program::Decision& decision);

}  // namespace ddpdoctor::values
