// SPDX-License-Identifier: Apache-2.0
// Calls of one group side by side: which of them differ, and a walk through all members' records by
// sequence number.
#pragma once

#include <map>
#include <vector>

#include "collector/graph/divergence.h"
#include "collector/graph/history.h"

namespace ddpdoctor::graph {

/// True when both sides are known and differ in this.
bool differ_in(Disagreement about, const model::CollectiveCall& a, const model::CollectiveCall& b);

/// True when one of the calls differs from the first.
bool any_differs(const Calls& calls, Disagreement about);

/// Calls that agree, together; the largest side first.
std::vector<DivergentCall> sort_into_sides(const Calls& calls, Disagreement about);

/// Through the same lines to the same line; also where the frames around one of them are not known.
bool same_callers(const model::CollectiveCall& a, const model::CollectiveCall& b);

/// Calls that came the same way, together; the largest side first.
std::vector<DivergentCall> sort_by_callers(const Calls& calls);

/// all_to_all: what a rank sends to another must be what that one expects. The ranks in most
/// contradictions are a side of their own, the last; one side when nothing contradicts. `members`
/// are the group's ranks in order.
std::vector<DivergentCall> sort_by_splits(const Calls& calls,
                                          const std::vector<model::Rank>& members);

/// Walks all members of a group through their records, one sequence number at a time. The history
/// must outlive it.
class Walk {
 public:
  Walk(const std::map<model::Rank, Calls>& ranks, std::int64_t from);

  /// Moves to the next recorded sequence; false at the end.
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
