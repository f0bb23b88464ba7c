// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/new_round.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/partings/loops_seen.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/partings/skipped_step.h"
#include "collector/detectors/paths/call_runs.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Examination;

/// From the iterators of all ranks in it; nullopt if some are unknown.
std::optional<bool> is_in_first_round(const Examination& examination, const Side& in,
                                      const LeftLoop& loop) {
  for (const model::Rank rank : in.ranks) {
    const auto seen = loop_seen_at(examination.job, rank, loop.where);
    if (!seen || seen->over.loose || !seen->over.done) {
      return std::nullopt;
    }
    if (*seen->over.done != 1) {
      return false;
    }
  }
  return true;
}

/// From the records: the earlier calls from this line are complete iterations, and the waiting call
/// equals the first of each. If an iteration makes one call, it cannot be distinguished from
/// repeated calls.
bool follows_whole_passes(const Examination& examination, const Parting& parting, const Side& in) {
  if (!parting.recorded || parting.shifted || !parting.sequence || in.call == nullptr) {
    return false;
  }
  const std::vector<Run> runs = runs_from(
      examination.history.calls(parting.group, in.ranks.front()), in.path, *parting.sequence);
  const auto longest = std::max_element(
      runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.size() < b.size(); });
  const std::size_t period = longest->empty() ? 0 : period_of(*longest);
  return period > 1 && 2 * period <= longest->size() && runs.back().size() % period == 0 &&
         begins_alike(*longest, runs.back()) && same_content(*longest->front(), *in.call);
}

/// The frame of the path in the loop's function; its end if there is none.
Path::const_iterator at_loop(const Path& path, const LeftLoop& loop) {
  return std::find_if(path.begin(), path.end(), [&loop](const model::CallSite& site) {
    return site.file == loop.where.file && site.function == loop.where.function;
  });
}

/// A condition that was decided before the loop, in its function or in those between it and the
/// fork.
std::optional<Branch> branch_above(const model::JobModel& job, Fork fork, const LeftLoop& loop) {
  Path& below = fork.below_theirs;
  const auto in = at_loop(below, loop);
  if (in == below.end()) {
    return std::nullopt;
  }
  below.erase(below.begin(), in);
  below.front().line = loop.where.line;
  fork.below_ours.clear();
  return any_branch(job, fork);
}

}  // namespace

bool read_left_out_loop(const Examination& examination, Explanation& explanation) {
  const LeftLoop loop = *explanation.loop;
  Explanation turned = explanation;
  if (!loop.ours_left) {
    turned.turn();
  }
  const Parting& parting = turned.parting;
  if (parting.shifted || loop.way_out || !parting.odd.calls() || !parting.rest.calls() ||
      in_backward(examination, parting.rest) ||
      at_loop(turned.fork->below_theirs, loop) == turned.fork->below_theirs.end()) {
    return false;
  }
  const auto first = is_in_first_round(examination, parting.rest, loop);
  if (!first.value_or(follows_whole_passes(examination, parting, parting.rest))) {
    return false;
  }
  turned.branch = branch_above(examination.job, *turned.fork, loop);
  if (!turned.branch) {
    turned.branch = skipped_step(examination.job, *turned.fork);
  }
  if (!turned.branch) {
    return false;
  }
  turned.loop.reset();
  turned.cause = Cause::kDivergent;
  explanation = std::move(turned);
  return true;
}

}  // namespace ddpdoctor::detectors
