// SPDX-License-Identifier: Apache-2.0
// What the locals that a tool printed are good for: the arguments of torch.distributed, and the
// rank.
#pragma once

#include <optional>
#include <string_view>

#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {

/// A rank that a local names; better words weigh more.
struct RankClaim {
  std::optional<model::Rank> rank;
  int weight = 0;
};

/// Takes a local of this frame. Of others than torch.distributed's own frames values are not kept:
/// they may hold anything.
void take_local(model::Frame& frame, std::string_view name, std::string_view value,
                RankClaim& claim);

/// The same for a line "name: value".
void take_local(model::Frame& frame, std::string_view line, RankClaim& claim);

}  // namespace ddpdoctor::imports
