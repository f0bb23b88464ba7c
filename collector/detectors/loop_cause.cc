// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/loop_cause.h"

#include <string_view>
#include <utility>

#include "collector/detectors/rounds.h"
#include "collector/detectors/side_questions.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;
using graph::Examination;

constexpr std::string_view kOrBatches =
    "Ranks with different numbers of batches would look alike: compare those.";

// Out of the loop for good: in another collective, at the end, or gone with status 0.
bool has_gone_on(const Side& side) {
  return side.calls() || side.activity() == Activity::kExit || side.activity() == Activity::kExited;
}

bool read_left_loop(const Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  if (!explanation.loop) {
    return false;
  }
  const Side& in_loop = explanation.loop->ours_left ? parting.rest : parting.odd;
  const Side& out = explanation.loop->ours_left ? parting.odd : parting.rest;
  if (explanation.loop->fixed || !in_loop.calls() || !has_gone_on(out)) {
    explanation.loop.reset();
    explanation.otherwise = {};
    return false;
  }
  if (explanation.loop->over_keys) {
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
  if (!explanation.loop->ours_left) {
    explanation.turn();
  }
  if (in_backward(examination, parting.rest) &&
      (lacks_gradients(examination.job, parting) || waits_within_a_step(examination, parting))) {
    explanation.loop.reset();
    explanation.otherwise = {};
    explanation.cause = Cause::kUnused;
    return true;
  }
  explanation.cause = Cause::kUneven;
  if (explanation.loop->way_out) {
    explanation.branch = explanation.loop->way_out;
    explanation.cause = explanation.branch->on == python_source::Dependence::kRank
                            ? Cause::kRankConditional
                            : Cause::kDivergent;
  }
  return true;
}

// Those behind make a call that the others passed by: under a condition, or in a loop that the
// others went round less often. What they repeat they had reached together: no condition led there.
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
    if (!odd_is_behind && explanation.parting.tie) {
      explanation.turn();
    }
    explanation.cause = Cause::kDivergent;
    return true;
  }
  if (explanation.loop && !is_over_batches(explanation.loop)) {
    explanation.loop->over_keys = true;
  }
  return read_left_loop(examination, explanation);
}

// Behind two loops at once: who is in the inner one is in a round that the others did not make, or
// in the next pass of the outer one. What led out of the outer one says which.
void look_further_out(const Examination& examination, Explanation& explanation) {
  const LeftLoop& inner = *explanation.loop;
  if (inner.over_keys || inner.way_out) {
    return;
  }
  const bool anew = both_had_left(examination, explanation.parting, *explanation.fork, inner);
  const bool decided = anew || inner.fixed;
  if (auto outer = loop_left_with(examination.job, *explanation.fork, inner, anew)) {
    explanation.loop = std::move(*outer);
    explanation.otherwise = decided ? std::string_view() : kOrBatches;
  }
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
  if (explanation.loop) {
    look_further_out(examination, explanation);
  }
  return read_left_loop(examination, explanation);
}

void hedge_a_way_out(const Examination& examination, Explanation& explanation) {
  const auto inner = left_loop(examination.job, *explanation.fork);
  if (!inner || inner->over_keys || inner->way_out || inner->fixed ||
      both_had_left(examination, explanation.parting, *explanation.fork, *inner)) {
    return;
  }
  const auto outer = loop_left_with(examination.job, *explanation.fork, *inner, false);
  if (outer && outer->way_out->where == explanation.branch->where) {
    explanation.otherwise = kOrBatches;
  }
}

}  // namespace ddpdoctor::detectors
