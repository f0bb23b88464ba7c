// SPDX-License-Identifier: Apache-2.0
// Group names for recorded calls without one: TORCH_DISTRIBUTED_DEBUG=DETAIL wraps every process
// group, and neither the wrapped backend nor the wrapper's own backend gets the name.
#pragma once

#include <cstdint>
#include <optional>

#include "collector/stacks/stack.h"

namespace ddpdoctor::stacks {

/// With DETAIL, the k-th created group has the numbers 2k (the user's calls) and 2k + 1 (the
/// wrapper's comparison). If `groups_made` shows that all groups ever created in this process still
/// exist, the former get their names and the latter are dropped; otherwise all unnamed records are
/// dropped, because calls of different groups must not be taken for one sequence. `problem` of the
/// state says so.
void name_records(TorchState& state, std::optional<std::int64_t> groups_made);

}  // namespace ddpdoctor::stacks
