// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/skipped_unit.h"

#include <utility>

#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/paths/libraries.h"

namespace ddpdoctor::detectors {

bool skipped_a_unit(const graph::Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  // Backward follows the forward in which the other side gathers: this side is further.
  const bool rest_skipped = parting.tie && in_backward(examination, parting.rest) &&
                            !in_backward(examination, parting.odd);
  const Side& skipped = rest_skipped ? parting.rest : parting.odd;
  const Side& gathers = rest_skipped ? parting.odd : parting.rest;
  if (!gather_different_units(examination.job, parting) &&
      !skips_sharded_module(skipped.standing, gathers.standing)) {
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
