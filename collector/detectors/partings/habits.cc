// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/habits.h"

#include <algorithm>

#include "collector/detectors/paths/call_runs.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Calls;

// Calls of one rank; with a longer history, its start counts as lost.
constexpr std::size_t kMostCalls = 1 << 16;

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

bool is_first_of_its_kind(const graph::Examination& examination,
                          const model::CollectiveCall& call) {
  constexpr std::size_t kHabit = 2;  // number of calls of the rank that excludes chance
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
  constexpr std::size_t kHabit = 2;
  if (side.call == nullptr || !side.call->call_site.known() || side.operation.empty()) {
    return false;
  }
  std::size_t others = 0;
  for (const model::CollectiveCall& call : examination.job.collectives) {
    const bool itself = call.rank == side.call->rank && call.group == side.call->group &&
                        call.sequence == side.call->sequence;
    if (itself || call.call_site != side.call->call_site) {
      continue;
    }
    if (call.operation == side.operation) {
      return false;
    }
    ++others;
  }
  return others >= kHabit;
}

}  // namespace ddpdoctor::detectors
