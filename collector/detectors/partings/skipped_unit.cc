// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/skipped_unit.h"

#include <algorithm>
#include <utility>

#include "collector/detectors/partings/framework_paths.h"
#include "collector/detectors/partings/passes.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/paths/libraries.h"
#include "collector/graph/history.h"
#include "collector/model/operation_kinds.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Examination;

bool scatters_gradients(const model::CollectiveCall* call) {
  const model::OperationKind kind = model::kind_of(call->operation);
  return kind.reduces && kind.scatters;
}

/// Its recorded call gathers the parameters of a module that the rank also trains: the host may
/// have run ahead of it, out of the module.
bool gathered_a_unit(const Examination& examination, const Side& side) {
  if (side.call == nullptr || !gathers_unasked(examination.job, side)) {
    return false;
  }
  const graph::Calls& calls = examination.history.calls(side.call->group, side.call->rank);
  return std::any_of(calls.begin(), calls.end(), scatters_gradients);
}

/// Its recorded call begins the backward of sharded modules.
bool is_past_the_forward(const Examination& examination, const Side& side) {
  return side.call != nullptr && scatters_gradients(side.call) &&
         is_at_backward(examination.job, side);
}

/// It has gone on to another call of the forward or the backward, and not asked for parameters.
bool may_have_skipped(const Examination& examination, const Side& skipped, const Side& gathers) {
  return skips_sharded_module(skipped.standing, gathers.standing) ||
         (is_past_the_forward(examination, skipped) && gathered_a_unit(examination, gathers));
}

/// The records show that the other side's gather is still before it: it is in the iteration before,
/// or in an earlier line of the same one.
bool has_the_gather_before_it(const Examination& examination, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  if (!explanation.fork || !parting.odd.calls() ||
      parting.about != graph::Disagreement::kOperation) {
    return false;
  }
  const Ahead ahead = passes_of(examination, parting, *explanation.fork).ahead;
  return ahead == Ahead::kRest ||
         (ahead == Ahead::kNeither && explanation.fork->ours.line < explanation.fork->theirs.line);
}

/// The ranks that left the loop are in the backward that follows its forward: the loop is over
/// parts of one batch.
bool ran_in_forward(const graph::Examination& examination, const Explanation& explanation,
                    const LeftLoop& loop) {
  const Side& out = loop.ours_left ? explanation.parting.odd : explanation.parting.rest;
  const Fork& fork = *explanation.fork;
  const model::CallSite& in = loop.ours_left ? fork.theirs : fork.ours;
  return in_backward(examination, out) && !same_function(loop.where, in) &&
         in.line < (loop.ours_left ? fork.ours : fork.theirs).line;
}

}  // namespace

bool skipped_a_unit(const graph::Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  const bool other_unit = gather_different_units(examination.job, parting);
  if (parting.shifted && other_unit) {  // the next calls show which side left the unit out
    if (parting.tie && !parting.odd_skipped) {
      explanation.turn();
    }
    return true;
  }
  const auto is_further = [&](const Side& side) {
    return in_backward(examination, side) || is_past_the_forward(examination, side);
  };
  // Backward follows the forward in which the other side gathers: this side is further.
  const bool rest_skipped = parting.tie && is_further(parting.rest) && !is_further(parting.odd);
  const Side& skipped = rest_skipped ? parting.rest : parting.odd;
  const Side& gathers = rest_skipped ? parting.odd : parting.rest;
  if (explanation.fork && !other_unit && !parting.recorded && gathers.standing != nullptr &&
      gathers_inside_another_unit(
          *gathers.standing, rest_skipped ? explanation.fork->ours : explanation.fork->theirs)) {
    return false;
  }
  if (!other_unit && !may_have_skipped(examination, skipped, gathers)) {
    return false;
  }
  if (rest_skipped) {
    explanation.turn();
  } else if (has_the_gather_before_it(examination, explanation)) {
    return false;
  }
  // Of user code that does not fork, the framework's functions show who is further.
  const auto fork = explanation.fork ? explanation.fork
                                     : fork_of(whole_path(examination.job, parting.odd),
                                               whole_path(examination.job, parting.rest));
  const bool in_later_line = fork && fork->ours.line < fork->theirs.line;
  if (parting.tie && (is_before(parting) || in_later_line)) {
    explanation.turn();
  }
  return true;
}

bool left_a_loop_of_steps(const graph::Examination& examination, const Explanation& explanation) {
  const auto loop = explanation.fork ? left_loop(examination.job, *explanation.fork) : std::nullopt;
  return is_over_batches(loop) && !loop->in_step &&
         !ran_in_forward(examination, explanation, *loop);
}

void read_choice_of_unit(const model::JobModel& job, Explanation& explanation) {
  if (!explanation.fork) {
    return;
  }
  auto loop = left_loop(job, *explanation.fork);
  if (!loop) {  // `model(x).backward()`: one line runs the unit and what follows
    loop = loop_of_calls(job, *explanation.fork, false);
  }
  auto choice = loop && loop->over_keys
                    ? loop->way_out
                    : data_branch(job, *explanation.fork, explanation.parting.tie);
  if (!choice && explanation.parting.shifted) {  // only a condition on the way to the unit is left
    choice = any_branch(job, *explanation.fork, /*ours_behind=*/false);
  }
  if (choice && (loop ? loop->ours_left : !choice->leads_to_ours)) {
    choice->leads_to_ours = false;
    explanation.branch = std::move(choice);
  }
}

}  // namespace ddpdoctor::detectors
