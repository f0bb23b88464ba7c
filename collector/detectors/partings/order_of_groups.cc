// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/order_of_groups.h"

#include <algorithm>
#include <cstddef>

#include "collector/detectors/partings/habits.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/partings/two_groups.h"
#include "collector/detectors/paths/deciding_origin.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;
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
    decided.push_back(is_decided_by_own_value(examination, one));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool by_other = false;
    for (std::size_t j = 0; j < all.size(); ++j) {
      by_other = by_other || (decided[j] && hold_each_other(parted[i], parted[j]));
    }
    if (decided[i] || all[i].cause == Cause::kSlow ||
        !is_order(examination, all[i], parted, parted[i])) {
      continue;
    }
    all[i].cause = by_other ? Cause::kNone : Cause::kOrder;
  }
  settle_calls_too_many(examination, parted, all);
}

}  // namespace ddpdoctor::detectors
