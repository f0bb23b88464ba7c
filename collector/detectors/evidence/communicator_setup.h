// SPDX-License-Identifier: Apache-2.0
// Ranks inside the functions that make, split or extend a communicator of NCCL, and the ranks that
// must join them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/graph/blocked_call.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

enum class SetupKind { kSplit, kWindow, kInit };

/// A rank in such a function.
struct Setup {
  const graph::Standing* standing = nullptr;
  SetupKind kind = SetupKind::kInit;
  std::string function;                    // "ncclCommSplit"
  std::optional<graph::BlockedCall> call;  // from its frames: no record contains the group yet
  bool bound = false;  // a framework calls NCCL itself: its communicators have unknown members
};

/// One for each rank whose stack shows such a function; read once.
const std::vector<Setup>& setups(const graph::Examination& examination);

/// The values that ranks creating one communicator must share; an unknown group may be the same
/// one.
std::string key_of(const Setup& one);

/// The ranks that those inside can wait for: the peer of a message, the rest of the group; for a
/// split, any rank.
model::RankSet expected(const graph::Examination& examination, const Setup& one);

/// Ranks that make a communicator whose ranks are all there: they will go on. On busy GPUs and in
/// large jobs this takes seconds; nothing after a minute.
const model::RankSet& complete_setups(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
