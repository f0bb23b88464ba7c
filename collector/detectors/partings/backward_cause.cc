// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/backward_cause.h"

#include <utility>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/partings/gradient_sync.h"
#include "collector/detectors/partings/habits.h"
#include "collector/detectors/partings/passes.h"
#include "collector/detectors/partings/recomputation.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Examination;

// A condition on the path of the odd ranks to their call; it may have led them there a step early.
std::optional<Branch> own_way_to_call(const model::JobModel& job, const Explanation& explanation) {
  if (!explanation.fork) {
    return std::nullopt;
  }
  Fork ours = *explanation.fork;
  ours.below_theirs.clear();
  return any_branch(job, ours);
}

}  // namespace

bool may_lack_a_bucket(const Examination& examination, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  const Fork& fork = *explanation.fork;
  const auto& lines = lines_of(examination.job, fork.ours.file);
  const auto loop = program::loop_around(lines, fork.theirs.line);
  return explanation.branch->leads_to_ours && loop && encloses(lines, *loop, fork.ours.line) &&
         fork.ours.line > fork.theirs.line && in_backward(examination, parting.rest) &&
         !in_backward(examination, parting.odd) && !has_all_gradients(examination.job, parting.odd);
}

namespace {

bool read_unused_of_odd(const Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  if (!in_backward(examination, parting.rest) || in_backward(examination, parting.odd) ||
      calls_from_backward(parting.odd) || !parting.odd.calls() ||
      has_backward_to_come(examination.job, parting) ||
      may_hide_a_branch(examination.job, explanation.fork) ||
      newcomer_by_rhythm(examination, parting) == Newcomer::kRest) {  // the odd side is in rhythm
    return false;
  }
  const Order order =
      explanation.fork ? order_of(examination, parting, *explanation.fork) : Order{};
  if (order.behind == Behind::kOdd) {
    return false;  // its own backward has not run yet
  }
  const Passes passes =
      explanation.fork ? passes_of(examination, parting, *explanation.fork) : Passes{};
  // A rank in backward is in that of the next step, or the odd one completed all of its own.
  const bool lacks_none = passes.differ() || has_all_gradients(examination.job, parting.odd);
  // Unless the odd one is known to have passed that line: it reduced no gradients there.
  if (!lacks_none || order.behind == Behind::kRest) {
    explanation.branch = own_choice_of_sync(examination.job, parting.rest.path);
  }
  if (lacks_none && !explanation.branch) {
    return false;
  }
  if (!explanation.branch && passes.ahead == Ahead::kUnknown && parting.recorded &&
      !left_out_by_rhythm(examination, parting)) {
    explanation.branch = own_way_to_call(examination.job, explanation);
    explanation.otherwise =
        explanation.branch
            ? kOrUnused
            : "A backward of the next step would look the same: compare what each rank did before.";
  }
  explanation.cause = explanation.branch ? Cause::kDivergent : Cause::kUnused;
  return true;
}

}  // namespace

bool read_unused(const Examination& examination, Explanation& explanation) {
  Explanation one = explanation;
  if (rest_is_past_backward(examination, one.parting)) {
    one.turn();
  }
  if (!read_unused_of_odd(examination, one)) {
    return false;
  }
  explanation = std::move(one);
  return true;
}

bool read_recorded_unused(const Examination& examination, Explanation& explanation) {
  Parting turned = explanation.parting;
  turned.turn();
  const auto lacks = [&](const Parting& one) {
    return in_backward(examination, one.rest) && !in_backward(examination, one.odd) &&
           !calls_from_backward(one.odd) && one.odd.calls() && !one.shifted &&
           lacks_gradients(examination.job, one) &&
           newcomer_by_rhythm(examination, one) != Newcomer::kRest;
  };
  if (lacks(turned)) {
    explanation.turn();
  } else if (!lacks(explanation.parting)) {
    return false;
  }
  explanation.cause = Cause::kUnused;
  return true;
}

}  // namespace ddpdoctor::detectors
