// SPDX-License-Identifier: Apache-2.0
// The plain fact seen from the other side: a few ranks are in a collective that most ranks never
// reach.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/two_groups.h"

namespace ddpdoctor::detectors {
namespace {

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary = fmt::format("{} {} alone in {}; {} never came there", said(parting.odd.ranks),
                                is_or_are(parting.odd.ranks), odd_place(examination, explanation),
                                said(parting.rest.ranks));
  finding.fix = fmt::format("Call {} on every rank of the group, or on none.",
                            source_quote(examination.job, parting.odd.site()).empty()
                                ? parting.odd.operation
                                : source_quote(examination.job, parting.odd.site()));
}

/// The others wait for their GPUs, and of whose calls nobody knows the group: hosts of a serving
/// framework that are not at one step.
bool only_runs_ahead(const graph::Examination& examination, const Parting& parting) {
  return parting.rest.activity() == graph::Activity::kGpu &&
         groups_are_guessed(examination, parting);
}

Findings detect(const graph::Examination& examination) {
  std::vector<Explanation> all = explanations(examination, Cause::kExtra);
  if (std::any_of(all.begin(), all.end(), [&](const Explanation& one) {
        return only_runs_ahead(examination, one.parting);
      })) {
    return {};
  }
  return findings_with(examination, Cause::kExtra, "extra-rank-in-collective",
                       [&](const Explanation& explanation, Finding& finding) {
                         tell(examination, explanation, finding);
                       });
}

constexpr std::string_view kExplanation =
    R"(What you see: one rank (or a few) waits in a collective; most ranks are elsewhere and do not wait for it.

Why: the few make a call that the program of the others does not contain.

How it is recognised: fewer ranks wait in the collective than are missing from it, and no condition or loop of the source explains it.

The fix: make the call on all ranks or on none, or use a group of those ranks only.

    +    pair = dist.new_group([0, 1])           # on every rank, once
    -    dist.all_reduce(stats)                  # reached by ranks 0 and 1
    +    dist.all_reduce(stats, group=pair)
)";

}  // namespace

extern const Detector extra_rank_in_collective;
const Detector extra_rank_in_collective = {
    .kind = "extra-rank-in-collective",
    .title = "A few ranks are in a collective that most never reach",
    .explanation = kExplanation,
    .detect = detect,
    .specificity = kPlainFact};

}  // namespace ddpdoctor::detectors
