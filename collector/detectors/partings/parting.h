// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a group diverge: which ranks wait in which call, which are missing, and where
// those are. From records, stacks, or both; detectors then determine the cause.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/detectors/paths/source_path.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Ranks that did the same; `path` is the user's call string to the call (or, without a call, to
/// their current line), innermost first.
struct Side {
  model::RankSet ranks;
  std::string operation;  // empty: no call
  Path path;
  const graph::Standing* standing = nullptr;    // one of them, nullptr if none was observed
  const model::CollectiveCall* call = nullptr;  // its recorded call at the divergence

  [[nodiscard]] graph::Activity activity() const;
  [[nodiscard]] const model::CallSite& site() const;
  /// In another call, at the end, or exited with status 0.
  [[nodiscard]] bool has_gone_on() const {
    return calls() || activity() == graph::Activity::kExit ||
           activity() == graph::Activity::kExited;
  }
  /// Its call, which was matched by order, has ended, and its ranks are in no other one.
  [[nodiscard]] bool passed_its_call() const {
    return call != nullptr && model::is_over(call->state) &&
           activity() == graph::Activity::kBetweenCalls;
  }
  /// In a collective, according to records or stacks.
  [[nodiscard]] bool calls() const {
    return !operation.empty();
  }
};

/// One divergence in one group. `odd` deviates; `rest` is the largest side of the others.
struct Parting {
  std::string group;
  std::optional<std::int64_t> sequence;
  graph::Disagreement about = graph::Disagreement::kMissing;
  Side odd;
  Side rest;
  model::RankSet unobserved;  // members without evidence
  bool tie = false;           // no majority: odd and rest may be exchanged if the source shows it
  bool recorded = false;      // shown by sequence numbers
  bool standing = false;      // shown by stacks
  bool shifted = false;  // an earlier call was matched by order only; odd.path leads to that call
  bool odd_skipped = false;  // if shifted: odd skipped the call (otherwise it made an extra one)
  bool settled = false;      // other evidence than the number of ranks shows which side is odd
  bool extra = false;  // if settled: odd is alone in a call in which the rest does not take part
  bool undecided = false;  // some rank of odd skipped the call, the others continued after it

  /// Odd made a call that the rest did not make.
  [[nodiscard]] bool has_extra_call() const {
    return extra || (shifted && !odd_skipped);
  }
  [[nodiscard]] int facts() const {
    return (recorded ? 1 : 0) + (standing ? 1 : 0);
  }
  /// Exchanges odd and rest.
  void turn();
};

/// The independent divergences: one per group, without those whose odd ranks only wait in another
/// diverged group.
std::vector<Parting> partings(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
