// SPDX-License-Identifier: Apache-2.0
// Uses locals that a tool printed: the arguments of torch.distributed, and the rank.
#pragma once

#include <optional>
#include <string_view>

#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {

/// A rank that a local names; more specific names have more weight.
struct RankClaim {
  std::optional<model::Rank> rank;
  int weight = 0;
};

/// Adds a local to this frame. Values are kept only for torch.distributed's own frames, because
/// others may contain anything.
void take_local(model::Frame& frame, std::string_view name, std::string_view value,
                RankClaim& claim);

/// The same for a line "name: value".
void take_local(model::Frame& frame, std::string_view line, RankClaim& claim);

}  // namespace ddpdoctor::imports
