// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/callback_count.h"

#include <algorithm>
#include <utility>

#include "collector/detectors/partings/passes.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using Lines = program::SourceText;

/// Every rank in the loops around `in` reaches `out` afterwards.
bool follows(const model::JobModel& job, const Lines& lines, int in, int out) {
  const auto loop = program::loop_around(lines, in);
  if (loop && !encloses(lines, *loop, out)) {
    return false;  // it may have left that loop
  }
  const std::vector<Block> before = program::deciding_branches(lines, out);
  return std::all_of(before.begin(), before.end(), [&](const Block& block) {
    return is_loop(block) || encloses(lines, block, in) ||
           dependence_of(job, lines, block) == program::Dependence::kNone;
  });
}

}  // namespace

bool read_callback(const graph::Examination& examination, Explanation& explanation) {
  const Fork& fork = *explanation.fork;
  const Lines& lines = lines_of(examination.job, fork.ours.file);
  const Order order = order_of(examination, explanation.parting, fork);
  for (const bool ours : {true, false}) {
    const model::CallSite& in = ours ? fork.ours : fork.theirs;
    const model::CallSite& out = ours ? fork.theirs : fork.ours;
    const Side& caller = ours ? explanation.parting.odd : explanation.parting.rest;
    const Side& gone = ours ? explanation.parting.rest : explanation.parting.odd;
    if (caller.standing == nullptr || caller.standing->thread == nullptr) {
      continue;
    }
    auto callback = callback_below(examination.job, *caller.standing->thread, in,
                                   ours ? fork.below_ours : fork.below_theirs);
    const Behind behind = ours ? Behind::kOdd : Behind::kRest;
    const bool later =
        order.behind == Behind::kUnknown ? out.line > in.line : order.behind == behind;
    if (!callback || !later || !caller.calls() || !gone.has_gone_on() ||
        !follows(examination.job, lines, in.line, out.line)) {
      continue;
    }
    explanation.callback = std::move(callback);
    if (!ours && explanation.parting.tie) {
      explanation.turn();
    }
    explanation.cause = Cause::kDivergent;
    return true;
  }
  return false;
}

}  // namespace ddpdoctor::detectors
