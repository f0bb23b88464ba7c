// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a group part: who waits in which call, who is not there, and where those are
// instead. From records, from stacks, or from both; detectors then ask why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/detectors/paths/source_path.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Ranks that did the same; `path` is the user's way to the call (or, without one, to where they
/// stand), innermost first.
struct Side {
  model::RankSet ranks;
  std::string operation;  // empty: no call
  Path path;
  const graph::Standing* standing = nullptr;    // one of them, nullptr when none was seen
  const model::CollectiveCall* call = nullptr;  // its recorded call at the parting

  [[nodiscard]] graph::Activity activity() const;
  [[nodiscard]] const model::CallSite& site() const;
  /// In a collective, by record or by stack.
  [[nodiscard]] bool calls() const {
    return !operation.empty();
  }
};

/// One parting in one group. `odd` deviates, `rest` is the largest side of the others.
struct Parting {
  std::string group;
  std::optional<std::int64_t> sequence;
  graph::Disagreement about = graph::Disagreement::kMissing;
  Side odd;
  Side rest;
  model::RankSet unobserved;  // members of whom nothing is known
  bool tie = false;           // no majority: odd and rest may be exchanged when the source says so
  bool recorded = false;      // sequence numbers show it
  bool standing = false;      // stacks show it
  bool shifted = false;       // an earlier call paired by order; odd.path leads to that call
  bool odd_skipped = false;   // then: odd left the call out (else it made one too many)
  bool settled = false;       // other evidence than the number of ranks says who is odd
  bool extra = false;         // then: odd is alone in a call that the rest have no part in
  bool undecided = false;     // somebody of odd left the call out, the others went on from it

  [[nodiscard]] int facts() const {
    return (recorded ? 1 : 0) + (standing ? 1 : 0);
  }
  /// Exchanges odd and rest.
  void turn();
};

/// The partings that explain themselves: one for each group, without those whose odd ranks only
/// wait in another parted group.
std::vector<Parting> partings(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
