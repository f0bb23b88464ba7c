// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/out_of_step.h"

#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/operation_kinds.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// The oldest call that this rank has not finished, if it needs data of every member.
const model::CollectiveCall* open_call(const graph::Examination& examination,
                                       const graph::GroupView& view,
                                       const graph::RankProgress& progress) {
  for (const model::CollectiveCall* call :
       examination.history.calls(view.group.id, progress.rank)) {
    if (call->sequence > progress.completed && !model::is_over(call->state)) {
      const model::OperationKind kind = model::kind_of(call->operation);
      return call->operation.empty() || kind.has_root ? nullptr : call;
    }
  }
  return nullptr;
}

/// Its watchdog counted this call as finished; what it was is unknown.
bool is_counted(const graph::Examination& examination, const graph::GroupView& view,
                model::Rank rank, std::int64_t sequence) {
  const model::CollectiveCall* call = examination.history.at(view.group.id, rank, sequence);
  return call != nullptr && call->operation.empty() && model::is_over(call->state);
}

}  // namespace

std::optional<OutOfStep> out_of_step(const graph::Examination& examination,
                                     const graph::GroupView& view) {
  for (const graph::RankProgress& behind : view.progress) {
    const model::CollectiveCall* open = open_call(examination, view, behind);
    if (open == nullptr) {
      continue;
    }
    for (const graph::RankProgress& ahead : view.progress) {
      if (ahead.completed > open->sequence &&
          is_counted(examination, view, ahead.rank, open->sequence)) {
        return OutOfStep{
            .behind = behind.rank, .ahead = ahead.rank, .finished = ahead.completed, .open = open};
      }
    }
  }
  return std::nullopt;
}

bool lost_step(const graph::Examination& examination, std::string_view group,
               const model::RankSet& ranks) {
  const graph::GroupView* view = examination.group(group);
  const auto step = view == nullptr ? std::nullopt : out_of_step(examination, *view);
  return step && ranks.contains(step->behind);
}

Findings calls_out_of_step(const graph::Examination& examination) {
  for (const graph::GroupView& view : examination.groups) {
    const auto step = out_of_step(examination, view);
    if (!step) {
      continue;
    }
    Finding finding;
    finding.kind = "mismatched-op";
    finding.confidence = Confidence::kPossible;
    add_waiting(examination, finding);
    finding.summary = fmt::format(
        "rank {} is still in {}, but rank {} has finished #{}, which needs all ranks: they made "
        "different calls before",
        step->behind, call_name(examination.job, *step->open), step->ahead, step->finished);
    if (step->open->call_site.known()) {
      finding.locations.push_back(location(step->open->call_site, model::RankSet{step->behind},
                                           fmt::format("rank {} is here", step->behind)));
    }
    const model::CollectiveCall* own = examination.history.last(view.group.id, step->ahead);
    if (own != nullptr && !own->operation.empty()) {
      finding.evidence.push_back({.rank = step->ahead,
                                  .text = fmt::format("rank {} is in {} (watchdog)", step->ahead,
                                                      call_name(examination.job, *own))});
    }
    finding.fix =
        "Look for a call that only some ranks make, or make in another order: saving, validation, "
        "logging. Start the next run with `ddpdoctor run -- …`: it records every call with its "
        "line.";
    return {std::move(finding)};
  }
  return {};
}

}  // namespace ddpdoctor::detectors
