// SPDX-License-Identifier: Apache-2.0
// What an arm of a decision leaves behind: a local that only this arm changes says later, when the
// test itself can no longer be worked out, whether a rank was there. `skipped += 1` in a handler.
#pragma once

#include <string>
#include <vector>

#include "collector/program/syntax/bindings.h"
#include "collector/program/syntax/decisions.h"
#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::values {

/// `bindings`: all of the function. Names of the locals that are bound before the decision and its
/// loops, and then by nothing but the arms of this decision.
std::vector<std::string> traces_of(const std::vector<program::Binding>& bindings,
                                   const program::Scope& function,
                                   const program::Decision& decision);

}  // namespace ddpdoctor::values
