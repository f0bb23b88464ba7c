// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/habits.h"

#include <algorithm>
#include <array>
#include <vector>

#include "collector/detectors/paths/call_runs.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Calls;

// Calls of one rank; with a longer history, its start counts as lost.
constexpr std::size_t kMostCalls = 1 << 16;
constexpr std::size_t kLongestRhythm = 12;  // last calls that are compared with earlier ones

/// The ranks of `ranks` that reached a call through these lines before `sequence`; nothing if some
/// rank's records do not begin at its first call.
std::optional<model::RankSet> who_came_before(const graph::Examination& examination,
                                              const Parting& parting, const model::RankSet& ranks,
                                              const Path& path) {
  model::RankSet came;
  for (const model::Rank rank : ranks) {
    const Calls& calls = examination.history.calls(parting.group, rank);
    if (calls.empty() || calls.front()->sequence > 1 || calls.size() > kMostCalls) {
      return std::nullopt;
    }
    const bool did = std::any_of(calls.begin(), calls.end(), [&](const auto* call) {
      return call->sequence < *parting.sequence && same_path(graph::callers_of(*call), path);
    });
    if (did) {
      came.insert(rank);
    }
  }
  return came;
}

bool same_kind(const model::CollectiveCall& a, const model::CollectiveCall& b) {
  return same_content(a, b) && a.dtype == b.dtype;
}

/// Of one kind, and from the same lines.
bool same_place(const model::CollectiveCall& a, const model::CollectiveCall& b) {
  return same_kind(a, b) && same_path(graph::callers_of(a), graph::callers_of(b));
}

/// How often calls like the last `length` ones were followed by a call of either kind.
std::array<std::size_t, 2> followers(const std::vector<Calls>& all, std::size_t length,
                                     const model::CollectiveCall& odd,
                                     const model::CollectiveCall& rest) {
  std::array<std::size_t, 2> out{};
  for (const Calls& calls : all) {
    for (std::size_t at = length; at < calls.size(); ++at) {
      bool alike = true;
      for (std::size_t i = 1; alike && i <= length; ++i) {
        alike = same_place(*calls[at - i], *calls[calls.size() - i]);
      }
      out[0] += alike && same_place(*calls[at], odd) ? 1 : 0;
      out[1] += alike && same_place(*calls[at], rest) ? 1 : 0;
    }
  }
  return out;
}

/// The side that breaks the rhythm of the calls before: the longest stretch of last calls that came
/// before at least `often` times was followed only by calls like those of the other side.
Newcomer out_of_rhythm(const std::vector<Calls>& before, std::size_t often,
                       const model::CollectiveCall& odd, const model::CollectiveCall& rest) {
  for (std::size_t length = kLongestRhythm; length >= 1; --length) {
    const auto followed = followers(before, length, odd, rest);
    if (followed[0] + followed[1] >= often) {
      return followed[0] == 0   ? Newcomer::kOdd
             : followed[1] == 0 ? Newcomer::kRest
                                : Newcomer::kNeither;
    }
  }
  return Newcomer::kNeither;
}

/// The calls before the divergence, which all ranks of a side share: of one rank each. Empty if no
/// records show the divergence itself.
std::vector<Calls> calls_before(const graph::Examination& examination, const Parting& parting) {
  constexpr std::ptrdiff_t kMostCompared = 4096;  // last calls of a rank
  std::vector<Calls> before;
  if (!parting.recorded || !parting.sequence || parting.shifted || parting.odd.call == nullptr ||
      parting.rest.call == nullptr) {
    return before;
  }
  for (const model::Rank rank : {parting.odd.ranks.front(), parting.rest.ranks.front()}) {
    const Calls& calls = examination.history.calls(parting.group, rank);
    const auto end = std::find_if(calls.begin(), calls.end(), [&parting](const auto* call) {
      return call->sequence >= *parting.sequence;
    });
    before.emplace_back(end - calls.begin() > kMostCompared ? end - kMostCompared : calls.begin(),
                        end);
  }
  return before;
}

}  // namespace

Newcomer newcomer(const graph::Examination& examination, const Parting& parting) {
  if (!parting.recorded || !parting.sequence || parting.shifted || parting.odd.call == nullptr ||
      parting.rest.call == nullptr || !parting.odd.site().known() || !parting.rest.site().known()) {
    return Newcomer::kNeither;
  }
  const model::RankSet all = parting.odd.ranks.united(parting.rest.ranks);
  const auto odd = who_came_before(examination, parting, all, graph::callers_of(*parting.odd.call));
  const auto rest =
      who_came_before(examination, parting, all, graph::callers_of(*parting.rest.call));
  if (!odd || !rest) {
    return Newcomer::kNeither;
  }
  if (odd->empty() && *rest == all) {
    return Newcomer::kOdd;
  }
  return rest->empty() && *odd == all ? Newcomer::kRest : Newcomer::kNeither;
}

Newcomer newcomer_in_one_line(const graph::Examination& examination,
                              const model::CollectiveCall& odd, const model::CollectiveCall& rest) {
  const Path line = graph::callers_of(odd);
  if (!odd.call_site.known() || !same_path(line, graph::callers_of(rest)) || same_kind(odd, rest)) {
    return Newcomer::kNeither;
  }
  std::vector<Calls> before;  // of each rank, from this line
  std::size_t others = 0;
  for (const auto& [rank, calls] : examination.history.ranks(odd.group)) {
    Calls& own = before.emplace_back();
    for (const model::CollectiveCall* call : calls) {
      if (call->sequence < odd.sequence && own.size() < kMostCalls &&
          same_path(graph::callers_of(*call), line)) {
        own.push_back(call);
        others += call->operation != odd.operation ? 1 : 0;
      }
    }
  }
  if (others < kHabit) {
    return Newcomer::kNeither;
  }
  const auto usual = [&before](const model::CollectiveCall& one) {
    return std::any_of(before.begin(), before.end(), [&one](const Calls& calls) {
      return std::any_of(calls.begin(), calls.end(),
                         [&one](const auto* call) { return same_kind(*call, one); });
    });
  };
  if (!usual(odd) || !usual(rest)) {
    return Newcomer::kNeither;  // one call with another type than ever
  }
  return out_of_rhythm(before, kHabit, odd, rest);
}

Newcomer newcomer_by_rhythm(const graph::Examination& examination, const Parting& parting) {
  const std::vector<Calls> before = calls_before(examination, parting);
  return before.empty()
             ? Newcomer::kNeither
             : out_of_rhythm(before, kHabit * before.size(), *parting.odd.call, *parting.rest.call);
}

Newcomer newcomer_of_tie(const graph::Examination& examination, const Parting& parting) {
  const Newcomer by_calls = parting.tie ? newcomer(examination, parting) : Newcomer::kNeither;
  return parting.tie && by_calls == Newcomer::kNeither ? newcomer_by_rhythm(examination, parting)
                                                       : by_calls;
}

bool left_out_by_rhythm(const graph::Examination& examination, const Parting& parting) {
  if (newcomer_by_rhythm(examination, parting) != Newcomer::kOdd) {
    return false;
  }
  const std::vector<Calls> before = calls_before(examination, parting);
  return std::any_of(before.begin(), before.end(), [&parting](const Calls& calls) {
    return std::adjacent_find(calls.begin(), calls.end(), [&](const auto* one, const auto* next) {
             return same_place(*one, *parting.rest.call) && same_place(*next, *parting.odd.call);
           }) != calls.end();
  });
}

const graph::Divergence* first_difference(const graph::Examination& examination,
                                          const graph::GroupView& view) {
  const graph::Divergence* end = view.end_of_agreement();
  const graph::Divergence* types = view.disagreement(graph::Disagreement::kDtype);
  if (types == nullptr || types->calls.size() < 2 ||
      (end != nullptr && end->sequence <= types->sequence)) {
    return end;
  }
  const auto of = [&](const graph::DivergentCall& side) {
    return examination.history.at(types->group, side.ranks.front(), types->sequence);
  };
  const model::CollectiveCall* rest = of(types->calls[0]);
  const model::CollectiveCall* odd = of(types->calls[1]);
  return odd != nullptr && rest != nullptr &&
                 newcomer_in_one_line(examination, *odd, *rest) != Newcomer::kNeither
             ? types
             : end;
}

bool is_first_of_its_kind(const graph::Examination& examination,
                          const model::CollectiveCall& call) {
  std::size_t before = 0;
  for (const auto& [rank, calls] : examination.history.ranks(call.group)) {
    for (const model::CollectiveCall* other : calls) {
      if (other->sequence >= call.sequence) {
        break;
      }
      const bool same_place =
          other->call_site.known() && graph::same_line(other->call_site, call.call_site);
      if (other->operation == call.operation || same_place) {
        return false;
      }
      before += rank == call.rank ? 1 : 0;
    }
  }
  return before >= kHabit;
}

bool met_here_before(const graph::Examination& examination, const Parting& parting) {
  const model::CollectiveCall* const now = parting.rest.call;
  if (!parting.recorded || now == nullptr || !now->call_site.known()) {
    return false;
  }
  const model::RankSet all = parting.odd.ranks.united(parting.rest.ranks);
  const Calls& calls = examination.history.calls(parting.group, now->rank);
  return std::any_of(calls.begin(), calls.end(), [&](const model::CollectiveCall* before) {
    return before->sequence < now->sequence &&
           graph::same_line(before->call_site, now->call_site) &&
           std::all_of(all.begin(), all.end(), [&](model::Rank rank) {
             return examination.history.at(parting.group, rank, before->sequence) != nullptr;
           });
  });
}

bool breaks_its_habit(const graph::Examination& examination, const Side& side) {
  if (side.call == nullptr || !side.call->call_site.known() || side.operation.empty()) {
    return false;
  }
  std::size_t others = 0;
  for (const std::string& group : examination.history.groups()) {
    for (const auto& [rank, calls] : examination.history.ranks(group)) {
      for (const model::CollectiveCall* call : calls) {
        if (call == side.call || call->call_site != side.call->call_site) {
          continue;
        }
        if (call->operation == side.operation) {
          return false;
        }
        ++others;
      }
    }
  }
  return others >= kHabit;
}

}  // namespace ddpdoctor::detectors
