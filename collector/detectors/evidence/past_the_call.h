// SPDX-License-Identifier: Apache-2.0
// Stacks of one moment show lines, not the order of calls: a rank whose line is after the call in
// which others wait may have passed that call.
#pragma once

#include <optional>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Two lines of one function.
struct PastTheCall {
  model::CallSite rank;     // later
  model::CallSite waiting;  // of the call
};

/// In the innermost function that both ranks execute, this rank is at a later line than the waiting
/// rank, no loop in that function repeats the call, and no recorded call says more. nullptr: not
/// observed.
std::optional<PastTheCall> may_have_passed(const graph::Examination& examination,
                                           const graph::Standing* rank,
                                           const graph::Standing* waiting);

}  // namespace ddpdoctor::detectors
