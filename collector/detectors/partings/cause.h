// SPDX-License-Identifier: Apache-2.0
// Why ranks diverge: one analysis of each divergence that its detectors share, so that none is
// reported twice in different words.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "collector/detectors/partings/parting.h"
#include "collector/detectors/paths/callbacks.h"
#include "collector/detectors/paths/libraries.h"

namespace ddpdoctor::detectors {

enum class Cause {
  kNone,             // the odd ranks are dead, absent or unobserved: the source shows nothing
  kSlow,             // they work, or the job makes progress
  kGenerate,         // text generation on sharded parameters ended at different lengths
  kSharded,          // a sharded module ran on some ranks only
  kRankDdpForward,   // DDP's forward under a test of the rank
  kMismatchedOp,     // two operations at one point of the program
  kOrder,            // two groups used in different order
  kRankConditional,  // a collective under a test of the rank
  kDivergent,        // a collective under a condition that each rank decides by itself
  kUneven,           // some ranks left the training loop earlier
  kCount,            // some ranks run more iterations of a loop over names
  kUnused,           // backward waits for a bucket the odd ranks never fill
  kExtra,            // a few ranks are in a collective that most never reach
  kMissing,          // a few ranks have not called it
};

struct Dispatch;

/// A divergence with its cause; `odd` are the ranks to blame.
struct Explanation {
  Cause cause = Cause::kNone;
  Parting parting;
  std::optional<Fork> fork{};
  std::optional<Branch> branch{};
  std::optional<LeftLoop> loop{};
  std::optional<Callback> callback{};  // a function that a library called more often on one side
  std::shared_ptr<const Dispatch> dispatch{};  // the branch chose which function a call reached
  std::string_view otherwise{};                // another possible cause, if no counts decide
  bool gone_past = false;       // the odd side exchanges messages further on, and left the call out
  model::CallSite user_line{};  // known if the sides are placed in a framework that it called

  /// Exchanges odd and rest and everything said about them.
  void turn();
};

/// For Explanation::otherwise.
inline constexpr std::string_view kOrBatches =
    "Ranks with different numbers of batches would look the same: compare those.";

/// One for each divergence of the job; computed once per examination.
const std::vector<Explanation>& explanations(const graph::Examination& examination);

/// Those with this cause.
std::vector<Explanation> explanations(const graph::Examination& examination, Cause cause);

}  // namespace ddpdoctor::detectors
