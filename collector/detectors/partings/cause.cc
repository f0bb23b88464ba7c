// SPDX-License-Identifier: Apache-2.0
// The checks in their order: first what the source shows directly (a test of the rank), then what
// it only permits (a loop left early), finally the bare fact that a rank is missing.
#include "collector/detectors/partings/cause.h"

#include <algorithm>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/partings/backward_cause.h"
#include "collector/detectors/partings/call_ahead.h"
#include "collector/detectors/partings/callback_count.h"
#include "collector/detectors/partings/dispatch.h"
#include "collector/detectors/partings/finalizer.h"
#include "collector/detectors/partings/framework_choice.h"
#include "collector/detectors/partings/framework_place.h"
#include "collector/detectors/partings/generation.h"
#include "collector/detectors/partings/generator_loop.h"
#include "collector/detectors/partings/gone_past.h"
#include "collector/detectors/partings/gradient_hook.h"
#include "collector/detectors/partings/habits.h"
#include "collector/detectors/partings/hidden_loop.h"
#include "collector/detectors/partings/holders.h"
#include "collector/detectors/partings/join_shadow.h"
#include "collector/detectors/partings/loop_cause.h"
#include "collector/detectors/partings/next_item.h"
#include "collector/detectors/partings/order_of_groups.h"
#include "collector/detectors/partings/parted_by_exception.h"
#include "collector/detectors/partings/passes.h"
#include "collector/detectors/partings/recomputation.h"
#include "collector/detectors/partings/shared_path.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/partings/side_values.h"
#include "collector/detectors/partings/skipped_step.h"
#include "collector/detectors/partings/skipped_unit.h"
#include "collector/detectors/partings/swallowed.h"
#include "collector/detectors/partings/trainer_loop.h"
#include "collector/detectors/partings/two_groups.h"
#include "collector/detectors/paths/call_runs.h"
#include "collector/model/questions.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;
using graph::Disagreement;
using graph::Examination;
using graph::Standing;

// Of two equal sides, the one that breaks the rhythm of the calls before is odd; without a rhythm,
// the one that the condition led to its call.
bool asks_for_turn(const Examination& examination, const Explanation& one) {
  if (!one.parting.tie || !one.branch) {
    return false;
  }
  const Newcomer by_rhythm = newcomer_by_rhythm(examination, one.parting);
  return by_rhythm == Newcomer::kNeither ? !one.branch->leads_to_ours
                                         : by_rhythm == Newcomer::kRest;
}

void take_branch(const Examination& examination, Explanation& explanation, bool of_rank) {
  if (asks_for_turn(examination, explanation)) {
    explanation.turn();
  }
  const bool forward =
      of_rank && in_ddp_forward(examination, explanation.parting.odd, explanation.parting.shifted);
  explanation.cause = forward   ? Cause::kRankDdpForward
                      : of_rank ? Cause::kRankConditional
                                : Cause::kDivergent;
}

bool read_rank_branch(const Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  explanation.branch =
      rank_branch(examination.job, *explanation.fork, parting.odd.ranks, parting.rest.ranks);
  if (!explanation.branch || !explains(*explanation.branch, parting) ||
      refuted_by_values(examination, *explanation.branch, parting)) {
    explanation.branch.reset();
    return false;
  }
  take_branch(examination, explanation, true);
  return true;
}

// The condition whose value was read on every rank and differs between the sides.
bool read_valued_branch(const Examination& examination, Explanation& explanation) {
  explanation.branch = branch_by_values(examination.job, *explanation.fork, explanation.parting);
  if (!explanation.branch || !explains(*explanation.branch, explanation.parting)) {
    explanation.branch.reset();
    return false;
  }
  take_branch(examination, explanation, explanation.branch->on == program::Dependence::kRank);
  return true;
}

bool read_data_branch(const Examination& examination, Explanation& explanation) {
  const Order order = order_of(examination, explanation.parting, *explanation.fork);
  explanation.branch =
      data_branch(examination.job, *explanation.fork, explanation.parting.tie, ours_behind(order));
  if (explanation.branch && read_caught_step(examination, explanation)) {
    return true;
  }
  if (!explanation.branch || !explains(*explanation.branch, explanation.parting) ||
      stands_in_left_loop(examination.job, *explanation.fork, *explanation.branch) ||
      would_have_left(examination.job, explanation.parting, *explanation.fork,
                      *explanation.branch) ||
      refuted_by_values(examination, *explanation.branch, explanation.parting)) {
    explanation.branch.reset();
    return false;
  }
  if (is_behind_a_shorter_epoch(examination, explanation) ||
      tests_a_last_item(examination.job, *explanation.fork, *explanation.branch)) {
    explanation.branch.reset();
    return false;
  }
  if (order.behind == Behind::kUnknown && may_lack_a_bucket(examination, explanation)) {
    explanation.otherwise = kOrUnused;
  }
  if (asks_for_turn(examination, explanation)) {
    explanation.turn();
  }
  explanation.cause = Cause::kDivergent;
  return true;
}

bool are_arms(const Examination& examination, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  return explanation.fork && parting.odd.calls() && parting.rest.calls() &&
         are_siblings(examination.job, *explanation.fork);
}

bool is_mismatch_at_one_point(const Examination& examination, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  return parting.about == Disagreement::kOperation && !parting.shifted &&
         parting.odd.operation != parting.rest.operation && are_arms(examination, explanation) &&
         !in_ddp_forward(examination, parting.odd, false) &&
         !in_ddp_forward(examination, parting.rest, false);
}

// A decision leads the odd ranks to a call of their own: they have not skipped the module in which
// the others gather, they are elsewhere.
bool read_own_way(const Examination& examination, Explanation& explanation) {
  Explanation own = explanation;
  if (!own.fork || own.parting.tie || !own.parting.odd.calls() ||
      !read_data_branch(examination, own) || !own.branch->leads_to_ours ||
      own.parting.odd.ranks != explanation.parting.odd.ranks) {
    return false;
  }
  explanation = std::move(own);
  return true;
}

bool read_libraries(const Examination& examination, Explanation& explanation) {
  if (read_join(examination, explanation)) {
    return true;
  }
  const bool odd_generates = is_generating(examination, explanation.parting.odd);
  const bool generating = odd_generates != is_generating(examination, explanation.parting.rest);
  // In a tie, the side that has left generate() is the odd one.
  if (generating && explanation.parting.tie && odd_generates) {
    explanation.turn();
  }
  const bool sharded = skipped_a_unit(examination, explanation);
  if (sharded && explanation.fork && read_rank_branch(examination, explanation)) {
    return true;  // its own gather, to which only a test of the rank leads
  }
  if (sharded && read_own_way(examination, explanation)) {
    return true;
  }
  // A rank that left the loop in which the others gather parameters skipped no module in it.
  const bool left = (generating || sharded) && left_a_loop_of_steps(examination, explanation) &&
                    read_loop(examination, explanation);
  if (generating) {
    explanation.cause = Cause::kGenerate;
  } else if (sharded && !left) {
    explanation.cause = Cause::kSharded;
    read_choice_of_unit(examination.job, explanation);
  }
  return generating || sharded || read_trainer_loop(examination, explanation);
}

// Two ranks made different calls, one of them under a flag: no other explanation is left.
bool read_flag(const Examination& examination, Explanation& explanation) {
  if (explanation.fork && explanation.parting.recorded) {
    const Order order = order_of(examination, explanation.parting, *explanation.fork);
    explanation.branch = any_branch(examination.job, *explanation.fork, ours_behind(order));
  }
  if (explanation.branch && asks_for_turn(examination, explanation)) {
    explanation.turn();
  }
  if (explanation.branch && !explains(*explanation.branch, explanation.parting)) {
    explanation.branch.reset();
  }
  return explanation.branch.has_value();
}

// Records have few frames: even sides without a common function show what guards their calls.
bool read_loose_rank_branch(const Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  if (explanation.fork || parting.odd.path.empty() || parting.rest.path.empty()) {
    return false;
  }
  explanation.fork = Fork{.ours = parting.odd.path.back(),
                          .theirs = parting.rest.path.back(),
                          .below_ours = parting.odd.path,
                          .below_theirs = {}};
  if (read_rank_branch(examination, explanation)) {
    return true;
  }
  explanation.fork.reset();
  return false;
}

// From stacks alone: a few ranks are in DDP's forward; the others wait for them in a call of their
// own, or in backward while the few evaluate.
bool read_lonely_forward(const Examination& examination, Explanation& explanation) {
  const auto in_forward = [&](const Side& side) {
    return !explanation.parting.shifted && stands_in_ddp_forward(side);
  };
  if (explanation.parting.tie && in_forward(explanation.parting.rest) &&
      !in_forward(explanation.parting.odd)) {
    explanation.turn();
  }
  const Parting& parting = explanation.parting;
  // A rank that waits after a forward which it made as well is a step behind: both made it.
  if (explanation.fork &&
      (order_of(examination, parting, *explanation.fork).behind == Behind::kRest ||
       all_called_before(examination, parting))) {
    return false;
  }
  const bool others_train =
      in_backward(examination, parting.rest) && !is_without_gradients(examination.job, parting.odd);
  const bool one_line = same_path(parting.odd.path, parting.rest.path);  // no choice of the user's
  if (one_line || !in_forward(parting.odd) || in_forward(parting.rest) || !parting.rest.calls() ||
      others_train || parting.odd.ranks.size() > parting.rest.ranks.size()) {
    return false;
  }
  explanation.cause = Cause::kRankDdpForward;
  return true;
}

// A tie, and the source shows nothing: the side that does something new is the odd one.
void settle_by_habit(const Examination& examination, Explanation& explanation) {
  const Newcomer odd = newcomer_of_tie(examination, explanation.parting);
  if (odd == Newcomer::kRest) {
    explanation.turn();
  }
  explanation.parting.settled = explanation.parting.settled || odd != Newcomer::kNeither;
  explanation.parting.tie = explanation.parting.tie && odd == Newcomer::kNeither;
}

void read_source(const Examination& examination, Explanation& explanation) {
  if (read_libraries(examination, explanation)) {
    return;
  }
  if (read_recomputation(examination, explanation) ||
      read_recorded_unused(examination, explanation) ||
      read_gradient_hook(examination, explanation)) {
    return;
  }
  if (is_mismatch_at_one_point(examination, explanation)) {
    explanation.cause = Cause::kMismatchedOp;
    return;
  }
  if (explanation.fork &&
      (read_dispatch(examination, explanation, ChosenBy::kRank) ||
       read_rank_branch(examination, explanation) || read_valued_branch(examination, explanation) ||
       read_dispatch(examination, explanation, ChosenBy::kAnything) ||
       read_callback(examination, explanation) || read_data_branch(examination, explanation) ||
       read_loop(examination, explanation) || read_hidden_loop(examination, explanation) ||
       read_skipped_step(examination, explanation))) {
    return;
  }
  if (read_framework_choice(examination, explanation, Decided::kOwn) ||
      read_loose_rank_branch(examination, explanation) ||
      read_lonely_forward(examination, explanation) || read_unused(examination, explanation) ||
      read_finalizer(explanation)) {
    return;
  }
  const Disagreement about = explanation.parting.about;
  if (about == Disagreement::kOperation) {
    explanation.cause = read_flag(examination, explanation) ? Cause::kDivergent
                        : groups_are_guessed(examination, explanation.parting)
                            ? Cause::kNone
                            : Cause::kMismatchedOp;
    if (explanation.cause == Cause::kMismatchedOp) {
      settle_by_habit(examination, explanation);
      if (left_out_by_rhythm(examination, explanation.parting)) {
        explanation.cause = Cause::kDivergent;
      }
    }
  } else if (about == Disagreement::kShape || about == Disagreement::kDtype) {
    // Calls of one function are one call with different sizes; calls of two functions are two paths
    // of the program.
    const model::CallSite& odd = explanation.parting.odd.site();
    const model::CallSite& rest = explanation.parting.rest.site();
    const bool two_ways =
        odd.known() && rest.known() && (odd.file != rest.file || odd.function != rest.function);
    explanation.cause = two_ways ? Cause::kDivergent : Cause::kNone;
  } else if (about == Disagreement::kMissing &&
             stand_in_one_function(examination.job, explanation)) {
    explanation.cause = Cause::kDivergent;
  }
}

// The bare fact: which side is alone, the ranks that called or those that did not.
Cause plain_cause(const Parting& parting) {
  const bool few_wait = parting.about == Disagreement::kMissing &&
                        parting.rest.ranks.size() < parting.odd.ranks.size();
  return few_wait ? Cause::kExtra : Cause::kMissing;
}

// A few ranks in a call that most never reach are the odd ones.
void blame_the_few(const Examination& examination, Explanation& explanation) {
  Parting& parting = explanation.parting;
  const bool few = plain_cause(parting) == Cause::kExtra;
  if (few && narrow_to_holders(examination, parting.odd)) {
    return;
  }
  if (parting.has_extra_call()) {
    explanation.cause = Cause::kExtra;
  } else if (few && !parting.shifted && !parting.settled && !sleep_before_it(parting)) {
    parting.turn();
    explanation.cause = Cause::kExtra;
  }
}

Explanation explain(const Examination& examination, const Parting& parting) {
  Explanation explanation{.cause = Cause::kMissing, .parting = parting};
  const bool slow = is_slow(examination, parting);
  if (slow || parting.undecided) {
    explanation.cause = slow ? Cause::kSlow : Cause::kMismatchedOp;
    return explanation;
  }
  const bool blocked = is_blocked_elsewhere(parting.odd);
  if ((is_gone(parting.odd) && !is_recorded_behind(examination, parting)) ||
      roots_contradict(examination, parting.group) ||
      awaits_an_outsider(examination, parting.odd) ||
      (blocked
           ? !parting.odd.ranks.empty() && misses_its_thread(examination, parting.odd.ranks.front())
           : parted_by_exception(examination, parting))) {
    // dead-rank, mismatched-root, io-stall or rank-raised reports it
    explanation.cause = Cause::kNone;
    return explanation;
  }
  if (blocked && !went_past(examination, parting)) {
    return with_next_item(examination, explanation);
  }
  blame_the_few(examination, explanation);
  explanation.fork = fork_between(examination, explanation.parting);
  read_source(examination, explanation);
  if (blocked) {
    read_gone_past(examination, explanation);
  }
  if (explanation.cause == Cause::kExtra && !parting.has_extra_call() &&
      is_call_of_all(examination, explanation)) {
    explanation.turn();
    explanation.cause = Cause::kMissing;
  }
  if (parting.odd.activity() == Activity::kExited && explanation.cause != Cause::kUneven &&
      parting.odd.call == nullptr) {
    explanation.cause = Cause::kNone;
  }
  doubt_unknown_peers(examination, explanation);
  const bool unexplained = explanation.cause == Cause::kMismatchedOp ||
                           explanation.cause == Cause::kMissing ||
                           (explanation.cause == Cause::kSharded && !parting.recorded) ||
                           (explanation.cause == Cause::kDivergent && !explanation.branch);
  if (unexplained && !read_framework_choice(examination, explanation, Decided::kMaybe)) {
    place_in_framework(explanation);
  }
  return explanation;
}

std::vector<Explanation> explain_all(const Examination& examination) {
  const std::vector<Parting> parted = partings(examination);
  std::vector<Explanation> all;
  for (const Parting& parting : parted) {
    all.push_back(explain(examination, parting));
  }
  settle_orders(examination, parted, all);
  return all;
}

}  // namespace

const std::vector<Explanation>& explanations(const Examination& examination) {
  return examination.memo.once<std::vector<Explanation>>(
      [&examination] { return explain_all(examination); });
}

std::vector<Explanation> explanations(const Examination& examination, Cause cause) {
  std::vector<Explanation> all = explanations(examination);
  std::erase_if(all, [cause](const Explanation& one) { return one.cause != cause; });
  return all;
}

}  // namespace ddpdoctor::detectors
