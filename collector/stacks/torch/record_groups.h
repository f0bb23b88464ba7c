// SPDX-License-Identifier: Apache-2.0
// Names for recorded calls whose group torch left unnamed: TORCH_DISTRIBUTED_DEBUG=DETAIL wraps
// every process group, and neither the wrapped backend nor the wrapper's own one is told its name.
#pragma once

#include <cstdint>
#include <optional>

#include "collector/stacks/stack.h"

namespace ddpdoctor::stacks {

/// Under DETAIL the k-th group made has the numbers 2k (the calls of the user) and 2k + 1 (the
/// wrapper comparing them). When `groups_made` says that all groups this process ever made are
/// still there, the former get their names back and the latter are dropped; otherwise all unnamed
/// records are dropped, because calls of different groups must not be taken for one sequence.
/// `problem` of the state says so.
void name_records(TorchState& state, std::optional<std::int64_t> groups_made);

}  // namespace ddpdoctor::stacks
