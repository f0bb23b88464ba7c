// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/order_of_groups.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "collector/detectors/partings/habits.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/partings/two_groups.h"
#include "collector/detectors/paths/deciding_origin.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;
using graph::Calls;
using graph::Examination;

// An order of groups: no test of the rank leads to one side's call only, or all met there before.
bool is_order(const Examination& examination, const Explanation& explanation,
              const std::vector<Parting>& all, const Parting& parting) {
  const bool plain = explanation.cause == Cause::kMissing || explanation.cause == Cause::kExtra;
  const bool are_arms = explanation.fork && parting.odd.calls() && parting.rest.calls() &&
                        are_siblings(examination.job, *explanation.fork);
  const bool held = is_mutual(parting, all) || is_in_circle(examination, parting) ||
                    would_have_met(examination, parting);
  return held && parting.odd.activity() == Activity::kCollective &&
         parting.rest.activity() == Activity::kCollective &&
         (plain || are_arms ||
          std::all_of(all.begin(), all.end(), [&examination](const Parting& one) {
            return met_here_before(examination, one);
          }));
}

// A value that each rank has for itself led to one side's call, or out of the loop around it: the
// number of calls differs, and the two groups only show it.
bool is_decided_by_own_value(const Examination& examination, const Explanation& explanation) {
  return explanation.cause == Cause::kDivergent && explanation.branch &&
         !explanation.branch->unproven &&
         program::is_own(origin_of(examination.job, *explanation.branch).source);
}

// One side makes its calls in a loop that the other side has left for the lines behind it: both run
// these lines in one order, and the number of rounds differs.
bool has_left_the_loop_of_the_others(const Explanation& explanation) {
  return explanation.cause == Cause::kUneven && explanation.loop && !explanation.loop->fixed &&
         explanation.fork && !graph::same_line(explanation.fork->ours, explanation.fork->theirs);
}

/// The group in which a rank is waiting: its last call there is not over.
enum class WaitsIn { kCounted, kBy };

/// The number of calls of `counted` in each round of a rank, from one call of `by` to the next.
/// Earlier rounds without such a call are not listed; the last number is of the round that is not
/// over. Empty if the times of the calls are not known.
std::vector<std::size_t> calls_per_round(const Calls& counted, const Calls& by, WaitsIn waits_in) {
  const auto lacks_time = [](const auto* call) { return !call->time; };
  if (counted.empty() || by.empty() || std::any_of(counted.begin(), counted.end(), lacks_time) ||
      std::any_of(by.begin(), by.end(), lacks_time)) {
    return {};
  }
  std::vector<std::size_t> rounds(by.size() + (waits_in == WaitsIn::kBy ? 0 : 1));
  std::size_t round = 0;
  for (const model::CollectiveCall* call : counted) {
    while (round < by.size() && *by[round]->time <= *call->time) {
      ++round;
    }
    if (round < rounds.size()) {
      ++rounds[round];
    }
  }
  rounds.erase(rounds.begin());  // the records may begin in the middle of it
  if (!rounds.empty()) {
    rounds.erase(std::remove(rounds.begin(), rounds.end() - 1, 0U), rounds.end() - 1);
  }
  return rounds;
}

/// The odd ranks of `parting` wait in the group of `other`. In this round they made some calls of
/// their group, but fewer than every rank in every earlier round: they skipped the rest of them,
/// and the order of the two groups did not change.
bool skipped_calls_of_this_round(const Examination& examination, const Parting& parting,
                                 const Parting& other) {
  const graph::History& history = examination.history;
  std::optional<std::size_t> usual;
  std::size_t earlier = 0;
  const auto are_as_usual = [&](const std::vector<std::size_t>& rounds) {  // all but the last one
    return !rounds.empty() && std::all_of(rounds.begin(), rounds.end() - 1, [&](std::size_t made) {
      ++earlier;
      usual = usual.value_or(made);
      return made == *usual;
    });
  };
  for (const model::Rank rank : parting.rest.ranks) {
    if (!are_as_usual(calls_per_round(history.calls(parting.group, rank),
                                      history.calls(other.group, rank), WaitsIn::kCounted))) {
      return false;
    }
  }
  return !parting.odd.ranks.empty() &&
         std::all_of(
             parting.odd.ranks.begin(), parting.odd.ranks.end(),
             [&](model::Rank rank) {
               const auto rounds = calls_per_round(history.calls(parting.group, rank),
                                                   history.calls(other.group, rank), WaitsIn::kBy);
               return are_as_usual(rounds) && rounds.back() > 0 && usual && rounds.back() < *usual;
             }) &&
         earlier >= kHabit;
}

// Ranks wait for each other in two groups, in a call that all repeat and in a new one: not an
// order. The rank that made the new call is alone in it and missing in the others' call.
void settle_calls_too_many(const Examination& examination, const std::vector<Parting>& parted,
                           std::vector<Explanation>& all) {
  std::vector<bool> is_new;
  std::vector<Cause> causes;
  for (std::size_t i = 0; i < parted.size(); ++i) {
    const model::CollectiveCall* call = parted[i].recorded ? parted[i].rest.call : nullptr;
    is_new.push_back(call != nullptr && is_first_of_its_kind(examination, *call));
    causes.push_back(all[i].cause);
  }
  for (std::size_t i = 0; i < parted.size(); ++i) {
    bool settled = false;
    for (std::size_t j = 0; j < parted.size() && !settled; ++j) {
      settled = is_new[i] != is_new[j] && causes[j] != Cause::kNone && causes[j] != Cause::kSlow &&
                hold_each_other(parted[i], parted[j]);
    }
    if (!settled || (causes[i] != Cause::kOrder && causes[i] != Cause::kMissing)) {
      continue;
    }
    all[i].cause = Cause::kNone;
    if (is_new[i]) {
      all[i] = {.cause = Cause::kExtra,
                .parting = parted[i],
                .fork = fork_of(parted[i].rest.path, parted[i].odd.path),
                .branch = std::nullopt,
                .loop = std::nullopt};
      all[i].parting.turn();
    }
  }
}

}  // namespace

void settle_orders(const Examination& examination, const std::vector<Parting>& parted,
                   std::vector<Explanation>& all) {
  std::vector<bool> decided;
  for (const Explanation& one : all) {
    decided.push_back(is_decided_by_own_value(examination, one) ||
                      has_left_the_loop_of_the_others(one));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool by_other = false;
    bool skipped = false;
    for (std::size_t j = 0; j < all.size(); ++j) {
      if (!hold_each_other(parted[i], parted[j])) {
        continue;
      }
      by_other =
          by_other || decided[j] || skipped_calls_of_this_round(examination, parted[j], parted[i]);
      skipped = skipped || skipped_calls_of_this_round(examination, parted[i], parted[j]);
    }
    if (decided[i] || skipped || all[i].cause == Cause::kSlow ||
        !is_order(examination, all[i], parted, parted[i])) {
      continue;
    }
    all[i].cause = by_other ? Cause::kNone : Cause::kOrder;
  }
  settle_calls_too_many(examination, parted, all);
}

}  // namespace ddpdoctor::detectors
