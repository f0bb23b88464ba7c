// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/next_item.h"

#include <algorithm>

#include "collector/detectors/partings/side_values.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/history.h"
#include "collector/program/questions/blocks.h"

namespace ddpdoctor::detectors {
namespace {

/// The paths from the line at which `waits` takes its next item; nothing if `handles` is not in a
/// call from the same loop.
std::optional<Fork> fork_at_head(const model::JobModel& job, const Path& waits,
                                 const Path& handles) {
  if (waits.empty()) {
    return std::nullopt;
  }
  const model::CallSite& head = waits.front();
  const auto loop = program::loop_around(lines_of(job, head.file), head.line);
  const auto inside = std::find_if(handles.begin(), handles.end(), [&](const auto& one) {
    return one.file == head.file && one.function == head.function && one.line >= head.line;
  });
  if (!loop || inside == handles.begin() || inside == handles.end() ||
      !std::equal(inside + 1, handles.end(), waits.begin() + 1, waits.end(), graph::same_line)) {
    return std::nullopt;
  }
  return Fork{.ours = head,
              .theirs = *inside,
              .below_ours = {},
              .below_theirs = Path(handles.begin(), inside)};
}

}  // namespace

Explanation with_next_item(const graph::Examination& examination, Explanation explanation) {
  const Parting& parting = explanation.parting;
  const graph::Activity odd = parting.odd.activity();
  if ((odd != graph::Activity::kQueue && odd != graph::Activity::kInput) || !parting.rest.calls()) {
    return explanation;
  }
  const auto fork = fork_at_head(examination.job, parting.odd.path, parting.rest.path);
  if (!fork) {
    return explanation;
  }
  auto branch = rank_branch(examination.job, *fork, parting.odd.ranks, parting.rest.ranks);
  const bool of_rank = branch.has_value();
  if (!of_rank) {
    branch = data_branch(examination.job, *fork, /*tie=*/false, /*ours_behind=*/false);
  }
  if (!branch || branch->leads_to_ours || branch->unproven ||
      refuted_by_values(examination, *branch, parting)) {
    return explanation;
  }
  explanation.fork = fork;
  explanation.branch = std::move(branch);
  explanation.cause = of_rank ? Cause::kRankConditional : Cause::kDivergent;
  explanation.otherwise = "A rank that was not given this item would look the same.";
  return explanation;
}

}  // namespace ddpdoctor::detectors
