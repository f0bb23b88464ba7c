// SPDX-License-Identifier: Apache-2.0
// The plain fact from the other side: a few ranks are in a collective that most ranks never call.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/half_finished.h"
#include "collector/detectors/evidence/ras_counts.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/partings/two_groups.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::detectors::extra_rank_in_collective {
namespace {

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary =
      fmt::format("only {} called {}; {}", said(parting.odd.ranks),
                  odd_place(examination, explanation), rest_waits(examination, explanation));
  finding.fix = fmt::format("Call {} on every rank of the group, or on none.",
                            source_quote(examination.job, parting.odd.site()).empty()
                                ? parting.odd.operation
                                : source_quote(examination.job, parting.odd.site()));
}

/// The others wait for their GPUs and the groups of the calls are unknown: hosts of a serving
/// framework at different steps.
bool only_runs_ahead(const graph::Examination& examination, const Parting& parting) {
  return parting.rest.activity() == graph::Activity::kGpu &&
         groups_are_guessed(examination, parting);
}

/// One of the others has ended: rank-exited reports it.
bool one_has_exited(const model::JobModel& job, const Parting& parting) {
  const auto exited = model::facts(job, model::kExitedByItself);
  return std::any_of(exited.begin(), exited.end(), [&parting](const model::Fact* fact) {
    return fact->rank && parting.rest.ranks.contains(*fact->rank);
  });
}

Findings detect(const graph::Examination& examination) {
  if (half_finished(examination)) {
    return {};  // the few have finished the call in which the others wait: they differ before it
  }
  std::vector<Explanation> all = explanations(examination, Cause::kExtra);
  if (std::any_of(all.begin(), all.end(), [&](const Explanation& one) {
        return only_runs_ahead(examination, one.parting) ||
               one_has_exited(examination.job, one.parting) ||
               is_one_ras_answer(examination, one.parting.group);
      })) {
    return {};
  }
  return findings_with(examination, Cause::kExtra, "extra-rank-in-collective",
                       [&](const Explanation& explanation, Finding& finding) {
                         tell(examination, explanation, finding);
                       });
}

constexpr std::string_view kExplanation =
    R"(What you see: one rank (or a few) waits in a collective; most ranks run other code and do not wait for it.

Why: a few ranks make a call that the other ranks never make.

How ddpdoctor knows: fewer ranks wait in the collective than are missing from it, and no condition or loop in the source explains the
difference.

Fix: call it on all ranks or on none, or use a group of those ranks only.

    +    pair = dist.new_group([0, 1])           # on every rank, once
    -    dist.all_reduce(stats)                  # reached by ranks 0 and 1
    +    dist.all_reduce(stats, group=pair)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "extra-rank-in-collective",
                           .title = "A few ranks are in a collective that most ranks never call",
                           .explanation = kExplanation,
                           .detect = detect,
                           .specificity = kPlainFact};

}  // namespace ddpdoctor::detectors::extra_rank_in_collective
