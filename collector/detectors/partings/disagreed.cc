// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/disagreed.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/cause.h"
#include "collector/detectors/partings/habits.h"
#include "collector/detectors/partings/parted_by_exception.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostSides = 4;  // in one finding

void add_side(const graph::Examination& examination, const model::RankSet& ranks,
              const model::CollectiveCall& call, Finding& finding) {
  if (call.call_site.known()) {
    finding.locations.push_back(
        location(call.call_site, ranks,
                 fmt::format("{} called {} here", said(ranks), call_name(examination.job, call))));
  }
  std::string text = fmt::format("{} called {}", said(ranks), call_name(examination.job, call));
  if (call.shape) {
    text += " with " + shape_text(*call.shape);
  }
  if (!call.dtype.empty()) {
    text += " of " + call.dtype;
  }
  if (!call.reduce_op.empty()) {
    text += ", reduced by " + call.reduce_op;
  }
  if (call.root) {
    text += fmt::format(", root rank {}", *call.root);
  }
  // Without an argument it is what the summary says.
  const bool bare = !call.shape && call.reduce_op.empty() && !call.root;
  finding.evidence.push_back(
      {.rank = ranks.front(),
       .text = std::move(text),
       .shown = bare ? std::optional(
                           Shown{.file = {}, .line = 0, .words = call_name(examination.job, call)})
                     : std::nullopt});
}

// Stacks in exactly this call are the second fact.
bool stands_there(const graph::Examination& examination, const graph::Divergence& divergence) {
  return std::any_of(examination.standings.begin(), examination.standings.end(),
                     [&divergence](const graph::Standing& standing) {
                       return standing.thread != nullptr && standing.call &&
                              standing.call->group == divergence.group &&
                              standing.call->sequence == divergence.sequence;
                     });
}

bool same_size(const model::CollectiveCall& a, const model::CollectiveCall& b) {
  return a.count == b.count && a.shape == b.shape;
}

/// The line of `call` passes the other's size everywhere else, and its own size only here.
bool breaks_its_habit(const graph::Examination& examination, const model::CollectiveCall& call,
                      const model::CollectiveCall& other) {
  std::size_t others = 0;
  for (const std::string& group : examination.history.groups()) {
    for (const auto& [rank, calls] : examination.history.ranks(group)) {
      for (const model::CollectiveCall* one : calls) {
        const bool here = group == call.group && one->sequence == call.sequence;
        if (here || one->call_site != call.call_site || one->operation != call.operation) {
          continue;
        }
        if (same_size(*one, call)) {
          return false;
        }
        others += same_size(*one, other) ? 1 : 0;
      }
    }
  }
  return call.call_site.known() && others >= kHabit;
}

/// Of two sides of equal size, the one whose line never did this before is the odd one.
void break_tie(const graph::Examination& examination, Disagreed& disagreed) {
  const bool rest = breaks_its_habit(examination, *disagreed.rest_call, *disagreed.odd_call);
  const bool odd = breaks_its_habit(examination, *disagreed.odd_call, *disagreed.rest_call);
  if (rest && !odd) {
    std::swap(disagreed.rest, disagreed.odd);
    std::swap(disagreed.rest_call, disagreed.odd_call);
  }
  disagreed.tie = rest == odd;
}

}  // namespace

Disagreed disagreed_at(const graph::Examination& examination, const graph::Divergence& divergence) {
  Disagreed result;
  const graph::DivergentCall& rest = divergence.calls[0];
  const graph::DivergentCall& odd = divergence.calls[1];
  result.rest = rest.ranks;
  for (std::size_t i = 1; i < divergence.calls.size(); ++i) {
    result.odd = result.odd.united(divergence.calls[i].ranks);
  }
  result.tie = rest.ranks.size() == odd.ranks.size();
  result.rest_call =
      examination.history.at(divergence.group, rest.ranks.front(), divergence.sequence);
  result.odd_call =
      examination.history.at(divergence.group, odd.ranks.front(), divergence.sequence);
  if (result.tie && divergence.calls.size() == 2 && result.rest_call != nullptr &&
      result.odd_call != nullptr && divergence.about == graph::Disagreement::kShape) {
    break_tie(examination, result);
  }
  result.named = divergence.calls.size() == 2 ? result.odd : odd.ranks;
  return result;
}

Finding finding_of(const graph::Examination& examination, const graph::Divergence& divergence,
                   const Disagreed& disagreed) {
  Finding finding;
  finding.confidence = confidence_of(stands_there(examination, divergence) ? 2 : 1);
  if (disagreed.tie &&
      (!unobserved_ranks(examination).empty() || examination.job.coverage.events_lost > 0)) {
    finding.confidence = Confidence::kPossible;
  }
  finding.culprits = disagreed.tie ? model::RankSet{} : disagreed.odd;
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  add_side(examination, disagreed.named, *disagreed.odd_call, finding);
  add_side(examination, disagreed.rest, *disagreed.rest_call, finding);
  for (std::size_t i = 2; i < std::min(divergence.calls.size(), kMostSides); ++i) {
    const model::RankSet& ranks = divergence.calls[i].ranks;
    const model::CollectiveCall* const call =
        examination.history.at(divergence.group, ranks.front(), divergence.sequence);
    if (call != nullptr) {
      add_side(examination, ranks, *call, finding);
    }
  }
  if (finding.locations.empty()) {  // the records have no lines
    add_where_accused_stand(examination, finding);
  }
  return finding;
}

bool is_out_of_step(const graph::Examination& examination, const graph::Divergence& divergence) {
  const Disagreed sides = disagreed_at(examination, divergence);
  const model::CallSite& odd = sides.odd_call->call_site;
  const model::CallSite& rest = sides.rest_call->call_site;
  if (!odd.known() || !rest.known()) {
    return false;
  }
  if (odd == rest) {  // one line, two calls of a library below it
    const std::vector<Explanation> all = explanations(examination);
    return std::any_of(all.begin(), all.end(), [&divergence](const Explanation& one) {
      return one.parting.group == divergence.group && one.parting.settled &&
             one.parting.sequence == divergence.sequence && one.cause == Cause::kDivergent;
    });
  }
  const auto next = [&](const model::RankSet& ranks) {
    return examination.history.at(divergence.group, ranks.front(), divergence.sequence + 1);
  };
  const model::CollectiveCall* after_odd = next(sides.odd);
  const model::CollectiveCall* after_rest = next(sides.rest);
  if (after_odd != nullptr && after_rest != nullptr &&
      after_odd->call_site == after_rest->call_site) {
    return false;  // they continue with equal calls: two branches with one call each
  }
  const graph::Shift shift =
      graph::shift_between(examination.history, divergence.group, divergence.sequence,
                           sides.odd.front(), sides.rest.front());
  if (shift == graph::Shift::kExtra || shift == graph::Shift::kSkipped) {
    return true;
  }
  if (shift != graph::Shift::kUnknown) {
    return false;
  }
  // Records that end here show no shift; two branches of one decision are in one function, unless
  // one side has left a loop that the other is in.
  const bool one_function = odd.file == rest.file && odd.function == rest.function;
  const std::vector<Explanation> all = explanations(examination);
  return std::any_of(all.begin(), all.end(), [&](const Explanation& one) {
    const bool other_call = one.loop && one.parting.sequence == divergence.sequence &&
                            !same_size(*sides.odd_call, *sides.rest_call);
    const bool explained =
        one.cause != Cause::kNone && one.cause != Cause::kSlow && one.cause != Cause::kMissing;
    return one.parting.group == divergence.group && (other_call || !one_function) &&
           (explained || another_attempt(examination, one.parting));
  });
}

bool is_unexplained(const graph::Examination& examination, const std::string& group) {
  const std::vector<Explanation> all = explanations(examination);
  return std::none_of(all.begin(), all.end(), [&group](const Explanation& one) {
    return one.parting.group == group && one.cause != Cause::kNone;
  });
}

bool fails_by_disagreement(const graph::Examination& examination, model::Rank rank) {
  return std::any_of(
      examination.groups.begin(), examination.groups.end(), [&](const graph::GroupView& view) {
        const model::CollectiveCall* last = examination.history.last(view.group.id, rank);
        return last != nullptr &&
               std::any_of(view.disagreements.begin(), view.disagreements.end(),
                           [&](const graph::Divergence& divergence) {
                             const model::CollectiveCall* const call =
                                 examination.history.at(view.group.id, rank, divergence.sequence);
                             // DDP does not wait for this call before its next ones.
                             const bool open =
                                 call != nullptr && (call == last || !model::is_over(call->state));
                             return open && divergence.about != graph::Disagreement::kMissing &&
                                    divergence.about != graph::Disagreement::kCallSite;
                           });
      });
}

}  // namespace ddpdoctor::detectors
