// SPDX-License-Identifier: Apache-2.0
// Ranks loop over different keys or lists and make one collective for each: one of them goes round
// once more.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_finding.h"

namespace ddpdoctor::detectors {
namespace {

void tell(const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  const bool fewer = explanation.loop->ours_left;
  finding.summary = fmt::format(
      "{} went round the loop `{}` ({}) {} often than {}, with one collective each time",
      said(parting.odd.ranks), explanation.loop->header, place(explanation.loop->where),
      fewer ? "less" : "more", said(parting.rest.ranks));
  finding.fix =
      "Agree on the keys first (all_gather_object of the names, then loop over the sorted union), "
      "or reduce one stacked tensor.";
  finding.locations.push_back(
      location(explanation.loop->where, {}, "the loop that has another length"));
}

Findings detect(const graph::Examination& examination) {
  return findings_with(examination, Cause::kCount, "collective-count", tell);
}

constexpr std::string_view kExplanation =
    R"(What you see: one rank is in an all_reduce inside a loop over names, the others are behind that loop (or the other way round).

Why: the loop goes over the keys of a dictionary or the elements of a list that differ between ranks: a loss that only some
batches have, metrics of classes that were seen. Each round is a collective, so the counts must be equal.

How it is recognised: one side waits in a loop of your source that goes over keys, names, tensors or losses; the other side has left it.

The fix: the same keys in the same order everywhere.

    -    for name in sorted(losses):
    -        dist.all_reduce(losses[name])
    +    for name in LOSS_NAMES:
    +        dist.all_reduce(losses.get(name, torch.zeros(1)))
)";

}  // namespace

extern const Detector collective_count;
const Detector collective_count = {
    .kind = "collective-count",
    .title = "Ranks make a different number of collectives in a loop over keys",
    .explanation = kExplanation,
    .detect = detect};

}  // namespace ddpdoctor::detectors
