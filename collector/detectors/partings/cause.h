// SPDX-License-Identifier: Apache-2.0
// Why ranks part: the one reading of a parting that its detectors share, so that no parting is told
// twice in different words.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "collector/detectors/partings/parting.h"
#include "collector/detectors/paths/callbacks.h"
#include "collector/detectors/paths/libraries.h"

namespace ddpdoctor::detectors {

enum class Cause {
  kNone,             // the odd ranks are dead, absent or unseen: nothing to read in the source
  kSlow,             // they work, or the job moves
  kGenerate,         // text generation on sharded parameters ended at different lengths
  kSharded,          // a sharded module ran on some ranks only
  kRankDdpForward,   // DDP's forward under a test of the rank
  kMismatchedOp,     // two operations at one point of the program
  kOrder,            // two groups used in different order
  kRankConditional,  // a collective under a test of the rank
  kDivergent,        // a collective under a condition each rank decides by itself
  kUneven,           // some ranks left the training loop earlier
  kCount,            // some ranks go round a loop over names more often
  kUnused,           // backward waits for a bucket the odd ranks never fill
  kExtra,            // few ranks are in a collective that most never reach
  kMissing,          // few ranks never came
};

/// A parting with its cause; odd are the ranks to blame.
struct Explanation {
  Cause cause = Cause::kNone;
  Parting parting;
  std::optional<Fork> fork;
  std::optional<Branch> branch;
  std::optional<LeftLoop> loop;
  std::optional<Callback> callback{};  // that a library called more often on one side
  std::string_view otherwise{};        // what fits, too, where no counts decide

  /// Exchanges odd and rest, and what is said of them.
  void turn();
};

/// One for each parting of the job; computed once for an examination.
const std::vector<Explanation>& explanations(const graph::Examination& examination);

/// Those with this cause.
std::vector<Explanation> explanations(const graph::Examination& examination, Cause cause);

}  // namespace ddpdoctor::detectors
