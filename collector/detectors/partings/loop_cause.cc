// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/loop_cause.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "collector/detectors/partings/gradient_sync.h"
#include "collector/detectors/partings/loops_seen.h"
#include "collector/detectors/partings/new_round.h"
#include "collector/detectors/partings/not_out_of_data.h"
#include "collector/detectors/partings/passes.h"
#include "collector/detectors/partings/ran_on.h"
#include "collector/detectors/partings/recorded_rounds.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/partings/side_values.h"
#include "collector/detectors/partings/skipped_step.h"
#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;
using graph::Examination;

constexpr std::string_view kOrLength =
    "A rank that goes over more names in that line would look the same: compare those.";

/// Not every backward in the loop reduces its gradients, and each rank decides which: then fewer
/// calls do not mean fewer batches.
bool read_choice_of_sync(const Examination& examination, Explanation& explanation) {
  auto choice = in_backward(examination, explanation.parting.rest)
                    ? own_choice_of_sync(examination.job, explanation.parting.rest.path)
                    : std::nullopt;
  if (!choice) {
    return false;
  }
  const bool equal =
      goes_equally_far(examination.job, explanation.parting, explanation.loop->where);
  explanation.branch = std::move(choice);
  explanation.otherwise = equal ? std::string_view() : kOrBatches;
  explanation.cause = Cause::kDivergent;
  return true;
}

/// The user's generator ended before the data that it goes over, by a test of the rank's own data
/// whose value was not read. A rank that ran out of data would be at the same line.
bool may_have_run_out(const Examination& examination, const Explanation& explanation) {
  const Branch& exit = *explanation.branch;
  return !same_function(exit.where, explanation.loop->where) &&
         origin_of(examination.job, exit).source == program::Source::kData &&
         values_say(examination.job, exit.where, explanation.parting) != ValuesSay::kDiffers;
}

bool read_left_loop(const Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  if (!explanation.loop) {
    return false;
  }
  const Side& in_loop = explanation.loop->ours_left ? parting.rest : parting.odd;
  const Side& out = explanation.loop->ours_left ? parting.odd : parting.rest;
  if (explanation.loop->fixed || !in_loop.calls() || !out.has_gone_on()) {
    explanation.loop.reset();
    explanation.otherwise = {};
    return false;
  }
  if (explanation.loop->over_keys && !explanation.loop->way_out &&
      made_whole_passes(examination, parting, in_loop, out)) {
    if (!explanation.loop->ours_left) {
      explanation.turn();
    }
    explanation.loop.reset();
    explanation.otherwise = {};
    explanation.branch =
        explanation.fork ? skipped_step(examination.job, *explanation.fork) : std::nullopt;
    if (!explanation.branch) {
      return false;
    }
    explanation.cause = Cause::kDivergent;
    return true;
  }
  if (explanation.loop->over_keys && !explanation.loop->way_out) {
    if (explanation.loop->ours_left && parting.tie) {
      explanation.turn();
    }
    explanation.cause = Cause::kCount;
    return true;
  }
  if (parting.settled) {
    explanation.cause = Cause::kCount;
    return true;
  }
  const bool turned = !explanation.loop->ours_left;
  if (turned) {
    explanation.turn();
  }
  if (in_backward(examination, parting.rest) &&
      (lacks_gradients(examination.job, parting) || waits_within_a_step(examination, parting))) {
    explanation.loop.reset();
    explanation.otherwise = {};
    explanation.cause = Cause::kUnused;
    return true;
  }
  if (!explanation.loop->way_out && explanation.fork &&
      (read_equal_rounds(examination, explanation) ||
       read_exception_out(examination, explanation) ||
       read_choice_of_sync(examination, explanation))) {
    return true;
  }
  if (!explanation.loop->way_out &&
      goes_equally_far(examination.job, parting, explanation.loop->where)) {
    // Memory refutes it: the ranks outside made all iterations of this loop.
    if (turned) {
      explanation.turn();
    }
    explanation.loop.reset();
    explanation.otherwise = {};
    return false;
  }
  explanation.cause = Cause::kUneven;
  if (explanation.loop->way_out) {
    explanation.branch = explanation.loop->way_out;
    explanation.cause = explanation.branch->on == program::Dependence::kRank
                            ? Cause::kRankConditional
                            : Cause::kDivergent;
    if (may_have_run_out(examination, explanation)) {
      explanation.otherwise = kOrBatches;
    }
    // Whether to stay or to leave is a value: the few with another one are the odd ranks.
    const Parting& now = explanation.parting;
    const bool few =
        explanation.cause == Cause::kDivergent && now.odd.ranks.size() > now.rest.ranks.size();
    if (few ||
        (explanation.cause == Cause::kRankConditional && !explanation.branch->leads_to_ours)) {
      explanation.turn();
    }
  }
  return true;
}

// "for x, y in val": its iterator shows that it is a DataLoader.
bool goes_over_a_loader(const Examination& examination, const LeftLoop& loop,
                        const Parting& parting) {
  const Side& in = loop.ours_left ? parting.rest : parting.odd;
  const auto seen = loop_seen_at(examination.job, in.ranks.front(), loop.where);
  return seen && seen->over.over.starts_with("DataLoader");
}

// The side behind makes a call that the others skipped: under a condition, or in a loop with fewer
// iterations on the others. If both reached it together before, no condition led there.
bool read_next_pass(const Examination& examination, Explanation& explanation,
                    const Passes& passes) {
  const bool odd_is_behind = passes.ahead == Ahead::kRest;
  Fork behind = *explanation.fork;
  (odd_is_behind ? behind.below_theirs : behind.below_ours).clear();
  explanation.loop = loop_of_calls(examination.job, *explanation.fork, odd_is_behind);
  if (!passes.behind_repeats || !explanation.loop) {
    explanation.branch = any_branch(examination.job, behind);
  }
  if (explanation.branch) {
    explanation.loop.reset();
    const Branch& branch = *explanation.branch;
    if (!reads_own(examination.job, lines_of(examination.job, branch.where.file),
                   {.line = branch.where.line, .text = {}, .condition = branch.condition})) {
      explanation.otherwise = kOrLength;
    }
    if (!odd_is_behind && explanation.parting.tie) {
      explanation.turn();
    }
    explanation.cause = Cause::kDivergent;
    return true;
  }
  if (explanation.loop && !is_over_batches(explanation.loop) &&
      !goes_over_a_loader(examination, *explanation.loop, explanation.parting)) {
    explanation.loop->over_keys = true;
  }
  return read_left_loop(examination, explanation);
}

// For ranks that wait in a loop which the others have left: whether they are in the iteration that
// those left early, or in the next one. kBegun: in its first iteration, which is the next one
// unless the others made fewer iterations before.
enum class Pass { kUnknown, kSame, kBegun, kNext };

Pass pass_of(const Examination& examination, const Explanation& explanation,
             const LeftLoop& inner) {
  const Parting& parting = explanation.parting;
  const Side& in = inner.ours_left ? parting.rest : parting.odd;
  const auto seen = loop_seen_at(examination.job, in.ranks.front(), inner.where);
  const bool counted = seen && !seen->over.loose && seen->over.done;
  if (counted && *seen->over.done > 1) {
    return Pass::kSame;
  }
  if ((counted && has_equal_batches(examination.job, in, inner)) ||
      both_had_left(examination, parting, *explanation.fork, inner)) {
    return Pass::kNext;
  }
  return counted ? Pass::kBegun : Pass::kUnknown;
}

// After two loops at once: the condition that left the outer one, unless something shows that the
// inner one was left first.
void look_further_out(const Examination& examination, Explanation& explanation) {
  const LeftLoop& inner = *explanation.loop;
  if (inner.over_keys || inner.way_out) {
    return;
  }
  const Pass pass = pass_of(examination, explanation, inner);
  if (pass == Pass::kSame && !inner.fixed) {
    return;
  }
  const bool decided = pass == Pass::kNext || inner.fixed;
  const BegunAnew begun = pass == Pass::kNext    ? BegunAnew::kCertainly
                          : pass == Pass::kBegun ? BegunAnew::kProbably
                                                 : BegunAnew::kMaybe;
  if (auto outer = loop_left_with(examination.job, *explanation.fork, inner, begun)) {
    explanation.loop = std::move(*outer);
    explanation.otherwise = decided ? std::string_view() : kOrBatches;
  }
}

// All ranks are in one iteration of a loop around it, and those outside are at a line before it:
// they have not reached it there.
bool is_not_reached_yet(const Examination& examination, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  const LeftLoop& loop = *explanation.loop;
  const Side& in = loop.ours_left ? parting.rest : parting.odd;
  const Side& out = loop.ours_left ? parting.odd : parting.rest;
  const model::CallSite& at = loop.ours_left ? explanation.fork->ours : explanation.fork->theirs;
  if (in.standing == nullptr || in.standing->thread == nullptr || ran_on(examination, in) ||
      ran_on(examination, out) || !same_function(at, loop.where) || at.line >= loop.where.line) {
    return false;
  }
  for (const LoopSeen& around : loops_seen(examination.job, *in.standing->thread)) {
    const bool encloses = same_function(around.where, loop.where) &&
                          around.where.line < loop.where.line && around.where.line < at.line;
    if (!encloses || around.over.loose || !around.over.done) {
      continue;
    }
    return std::all_of(out.ranks.begin(), out.ranks.end(), [&](model::Rank rank) {
      const auto seen = loop_seen_at(examination.job, rank, around.where);
      return seen && !seen->over.loose && seen->over.done == around.over.done;
    });
  }
  return false;
}

}  // namespace

bool read_loop(const Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  const bool both_call = parting.odd.call != nullptr && parting.rest.call != nullptr;
  const Passes passes = both_call ? passes_of(examination, parting, *explanation.fork) : Passes{};
  if (passes.differ()) {
    return read_next_pass(examination, explanation, passes);
  }
  explanation.loop = left_loop(examination.job, *explanation.fork);
  if (explanation.loop && read_left_out_loop(examination, explanation)) {
    return true;
  }
  if (explanation.loop && (was_never_entered(examination, explanation) ||
                           is_not_reached_yet(examination, explanation))) {
    explanation.loop.reset();
    return false;
  }
  if (explanation.loop) {
    look_further_out(examination, explanation);
  }
  return read_left_loop(examination, explanation);
}

bool is_behind_a_shorter_epoch(const Examination& examination, Explanation& explanation) {
  const auto inner = left_loop(examination.job, *explanation.fork);
  if (!inner || inner->over_keys || inner->way_out || inner->fixed) {
    return false;
  }
  const auto outer = loop_left_with(examination.job, *explanation.fork, *inner, BegunAnew::kMaybe);
  if (!outer || outer->way_out->where != explanation.branch->where) {
    return false;
  }
  const Pass pass = pass_of(examination, explanation, *inner);
  explanation.otherwise =
      pass == Pass::kUnknown || pass == Pass::kBegun ? kOrBatches : std::string_view();
  return pass == Pass::kSame;
}

}  // namespace ddpdoctor::detectors
