// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/skipped_unit.h"

#include <algorithm>
#include <utility>

#include "collector/detectors/partings/passes.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/paths/libraries.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

bool calls_backward(const model::JobModel& job, const model::CallSite& site) {
  const auto calls = program::calls_in(program::statement_at(lines_of(job, site.file), site.line));
  return std::any_of(calls.begin(), calls.end(), [](const program::Call& call) {
    return program::last_name(call.callee) == "backward";
  });
}

/// According to the records, the side reduces the gradients of sharded parameters in a backward().
bool scatters_in_backward(const model::JobModel& job, const Side& side) {
  return side.call != nullptr && side.operation.starts_with("reduce_scatter") &&
         calls_backward(job, side.site());
}

/// One side gathers a unit in a forward, and the other is already in the backward of that step: it
/// ran no such unit.
bool went_past_a_unit(const graph::Examination& examination, const Explanation& explanation,
                      const Side& skipped, const Side& gathers) {
  if (!explanation.fork || !scatters_in_backward(examination.job, skipped) ||
      !gathers_unasked(examination.job, gathers) ||
      calls_backward(examination.job, gathers.site())) {
    return false;
  }
  const Passes passes = passes_of(examination, explanation.parting, *explanation.fork);
  const bool gatherer_is_odd = &gathers == &explanation.parting.odd;
  return passes.ahead != (gatherer_is_odd ? Ahead::kOdd : Ahead::kRest);
}

}  // namespace

bool skipped_a_unit(const graph::Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  // Backward follows the forward in which the other side gathers: this side is further.
  const bool rest_scatters = parting.tie && scatters_in_backward(examination.job, parting.rest);
  const bool rest_skipped =
      rest_scatters || (parting.tie && in_backward(examination, parting.rest) &&
                        !in_backward(examination, parting.odd));
  const Side& skipped = rest_skipped ? parting.rest : parting.odd;
  const Side& gathers = rest_skipped ? parting.odd : parting.rest;
  if (!gather_different_units(examination.job, parting) &&
      !skips_sharded_module(skipped.standing, gathers.standing) &&
      !went_past_a_unit(examination, explanation, skipped, gathers)) {
    return false;
  }
  if (rest_skipped) {
    explanation.turn();
  }
  const bool in_later_line =
      explanation.fork && explanation.fork->ours.line < explanation.fork->theirs.line;
  if (parting.tie && (is_before(parting) || in_later_line)) {
    explanation.turn();
  }
  return true;
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
  if (choice && (loop ? loop->ours_left : !choice->leads_to_ours)) {
    choice->leads_to_ours = false;
    explanation.branch = std::move(choice);
  }
}

}  // namespace ddpdoctor::detectors
