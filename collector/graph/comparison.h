// SPDX-License-Identifier: Apache-2.0
// Compares calls of one group: finds those that differ, and walks through all members' records by
// sequence number.
#pragma once

#include <map>
#include <vector>

#include "collector/graph/divergence.h"
#include "collector/graph/history.h"

namespace ddpdoctor::graph {

/// True if the value is known on both sides and differs.
bool differ_in(Disagreement about, const model::CollectiveCall& a, const model::CollectiveCall& b);

/// True if any call differs from the first that tells the value.
bool any_differs(const Calls& calls, Disagreement about);

/// Groups equal calls; the largest side first.
std::vector<DivergentCall> sort_into_sides(const Calls& calls, Disagreement about);

/// True if both were reached through the same lines; frames that are unknown on one side do not
/// count.
bool same_callers(const model::CollectiveCall& a, const model::CollectiveCall& b);

/// Groups calls that were reached through the same lines; the largest side first.
std::vector<DivergentCall> sort_by_callers(const Calls& calls);

/// all_to_all: what a rank sends to another must be what the other expects. The ranks with most
/// contradictions form the last side; there is one side if nothing contradicts. `members` are the
/// group's ranks in order.
std::vector<DivergentCall> sort_by_splits(const Calls& calls,
                                          const std::vector<model::Rank>& members);

/// Walks through the records of all group members, one sequence number at a time. The history must
/// outlive it.
class Walk {
 public:
  Walk(const std::map<model::Rank, Calls>& ranks, std::int64_t from);

  /// Moves to the next recorded sequence number; false at the end.
  bool advance();

  [[nodiscard]] std::int64_t sequence() const {
    return sequence_;
  }
  [[nodiscard]] const Calls& present() const {
    return present_;
  }

 private:
  struct Head {
    Calls::const_iterator next;
    Calls::const_iterator end;
  };
  std::vector<Head> heads_;
  Calls present_;
  std::int64_t sequence_ = 0;
};

}  // namespace ddpdoctor::graph
