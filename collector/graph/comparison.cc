// SPDX-License-Identifier: Apache-2.0
// Compares two sides of one collective. A value that is unknown on either side never differs.
#include "collector/graph/comparison.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "collector/model/operation_kinds.h"

namespace ddpdoctor::graph {
namespace {

bool has_same_size(std::string_view operation) {
  return model::kind_of(operation).one_input_size;
}

bool differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

template <typename T>
bool differ(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b && *a != *b;
}

bool shapes_differ(const model::CollectiveCall& a, const model::CollectiveCall& b) {
  if (!has_same_size(a.operation)) {
    return false;
  }
  return a.shape && b.shape ? *a.shape != *b.shape : differ(a.count, b.count);
}

bool sites_differ(const model::CollectiveCall& a, const model::CollectiveCall& b) {
  return a.call_site.known() && b.call_site.known() && !same_line(a.call_site, b.call_site);
}

}  // namespace

bool differ_in(Disagreement about, const model::CollectiveCall& a, const model::CollectiveCall& b) {
  switch (about) {
    case Disagreement::kOperation:
      return differ(a.operation, b.operation);
    case Disagreement::kShape:
      return shapes_differ(a, b);
    case Disagreement::kDtype:
      return has_same_size(a.operation) && differ(a.dtype, b.dtype);
    case Disagreement::kReduceOp:
      return differ(a.reduce_op, b.reduce_op);
    case Disagreement::kRoot:
      return differ(a.root, b.root);
    case Disagreement::kSplits:  // only their number; sort_by_splits() compares them crosswise
      return a.splits && b.splits && a.splits->size() != b.splits->size();
    case Disagreement::kCallSite:
      return sites_differ(a, b);
    case Disagreement::kMissing:
      return false;
  }
  return false;
}

namespace {

/// The call tells the value that is compared.
bool tells(Disagreement about, const model::CollectiveCall& call) {
  switch (about) {
    case Disagreement::kOperation:
      return !call.operation.empty();
    case Disagreement::kShape:
      return call.shape || call.count;
    case Disagreement::kDtype:
      return !call.dtype.empty();
    case Disagreement::kReduceOp:
      return !call.reduce_op.empty();
    case Disagreement::kRoot:
      return call.root.has_value();
    case Disagreement::kSplits:
      return call.splits.has_value();
    case Disagreement::kCallSite:
      return call.call_site.known();
    case Disagreement::kMissing:
      return true;
  }
  return true;
}

/// Calls that do not tell the value are on the largest side, because they contradict no other; on
/// none if two are the largest.
template <typename Differ, typename Tells>
std::vector<DivergentCall> sides_by(const Calls& calls, const Differ& differ_here,
                                    const Tells& tells_it) {
  std::vector<DivergentCall> sides;
  const bool any_tells =
      std::any_of(calls.begin(), calls.end(), [&](const auto* call) { return tells_it(*call); });
  for (const model::CollectiveCall* call : calls) {
    if (any_tells && !tells_it(*call)) {
      continue;
    }
    const auto side = std::find_if(sides.begin(), sides.end(), [&](const DivergentCall& one) {
      return !differ_here(*one.call, *call);
    });
    if (side == sides.end()) {
      sides.push_back({.ranks = model::RankSet({call->rank}), .call = *call});
    } else {
      side->ranks.insert(call->rank);
    }
  }
  std::stable_sort(sides.begin(), sides.end(), [](const DivergentCall& a, const DivergentCall& b) {
    return a.ranks.size() > b.ranks.size();
  });
  const bool tie = sides.size() > 1 && sides[0].ranks.size() == sides[1].ranks.size();
  for (const model::CollectiveCall* call : calls) {
    if (any_tells && !tells_it(*call) && !tie) {
      sides.front().ranks.insert(call->rank);
    }
  }
  return sides;
}

}  // namespace

std::vector<DivergentCall> sort_into_sides(const Calls& calls, Disagreement about) {
  return sides_by(
      calls, [about](const auto& a, const auto& b) { return differ_in(about, a, b); },
      [about](const auto& call) { return tells(about, call); });
}

bool same_callers(const model::CollectiveCall& a, const model::CollectiveCall& b) {
  return a.callers.size() < 2 || b.callers.size() < 2 ||
         std::equal(a.callers.begin(), a.callers.end(), b.callers.begin(), b.callers.end(),
                    same_line);
}

std::vector<DivergentCall> sort_by_callers(const Calls& calls) {
  return sides_by(
      calls, [](const auto& a, const auto& b) { return !same_callers(a, b); },
      [](const auto& call) { return call.callers.size() >= 2; });
}

bool any_differs(const Calls& calls, Disagreement about) {
  const auto first = std::find_if(calls.begin(), calls.end(),
                                  [about](const auto* call) { return tells(about, *call); });
  return std::any_of(first, calls.end(), [&](const model::CollectiveCall* call) {
    return differ_in(about, **first, *call);
  });
}

namespace {

/// The entry of `splits` for a group rank; nothing if it is unknown.
std::optional<std::int64_t> split_for(const std::optional<std::vector<std::int64_t>>& splits,
                                      std::size_t group_rank, std::size_t size) {
  return splits && splits->size() == size ? std::optional((*splits)[group_rank]) : std::nullopt;
}

}  // namespace

std::vector<DivergentCall> sort_by_splits(const Calls& calls,
                                          const std::vector<model::Rank>& members) {
  std::map<model::Rank, std::size_t> places;  // group ranks
  for (std::size_t i = 0; i < members.size(); ++i) {
    places.try_emplace(members[i], i);
  }
  std::vector<std::pair<const model::CollectiveCall*, std::size_t>> told;
  for (const model::CollectiveCall* call : calls) {
    const auto place = places.find(call->rank);
    if (place != places.end() && (call->splits || call->output_splits)) {
      told.emplace_back(call, place->second);
    }
  }
  std::map<model::Rank, int> contradictions;
  int most = 0;
  for (const auto& [sender, from] : told) {
    for (const auto& [receiver, to] : told) {
      const auto sent = split_for(sender->splits, to, members.size());
      const auto expected = split_for(receiver->output_splits, from, members.size());
      if (differ(sent, expected)) {
        most = std::max(most, ++contradictions[sender->rank]);
        most = std::max(most, ++contradictions[receiver->rank]);
      }
    }
  }
  std::vector<DivergentCall> sides(1);
  DivergentCall odd;
  for (const model::CollectiveCall* call : calls) {
    DivergentCall& side = most > 0 && contradictions[call->rank] == most ? odd : sides.front();
    side.ranks.insert(call->rank);
    side.call = side.call ? side.call : std::optional(*call);
  }
  // Every pair contradicts: no rank is the odd one.
  if (sides.front().ranks.empty() && odd.ranks.size() > 1) {
    sides.front() = {.ranks = model::RankSet({calls.front()->rank}), .call = *calls.front()};
    odd = {.ranks = model::RankSet({calls.back()->rank}), .call = *calls.back()};
  }
  if (sides.front().ranks.empty()) {  // one rank contradicts itself: there is no second side
    sides.front() = std::move(odd);
  } else if (!odd.ranks.empty()) {
    sides.push_back(std::move(odd));
  }
  return sides;
}

Walk::Walk(const std::map<model::Rank, Calls>& ranks, std::int64_t from) {
  for (const auto& [rank, calls] : ranks) {
    const auto start = std::lower_bound(calls.begin(), calls.end(), from,
                                        [](const model::CollectiveCall* call, std::int64_t wanted) {
                                          return call->sequence < wanted;
                                        });
    heads_.push_back({.next = start, .end = calls.end()});
  }
}

bool Walk::advance() {
  sequence_ = std::numeric_limits<std::int64_t>::max();
  bool any = false;
  for (const Head& head : heads_) {
    if (head.next != head.end) {
      any = true;
      sequence_ = std::min(sequence_, (*head.next)->sequence);
    }
  }
  present_.clear();
  for (Head& head : heads_) {
    if (head.next != head.end && (*head.next)->sequence == sequence_) {
      present_.push_back(*head.next);
      ++head.next;
    }
  }
  return any;
}

}  // namespace ddpdoctor::graph
