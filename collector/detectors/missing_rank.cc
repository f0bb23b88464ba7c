// SPDX-License-Identifier: Apache-2.0
// The plain fact, when no finer cause is seen: ranks wait in a collective, one never came, and here
// is where it is.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/parting_finding.h"
#include "collector/detectors/wording.h"

namespace ddpdoctor::detectors {
namespace {

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary = fmt::format("{} never joined {}", said(parting.odd.ranks),
                                waiting_call(examination, explanation));
  const graph::Standing* standing = parting.odd.standing;
  if (standing != nullptr && standing->activity != graph::Activity::kUnobserved) {
    finding.summary += ": it " + whereabouts(examination.job, *standing);
  }
  finding.fix =
      standing != nullptr && standing->user.known()
          ? fmt::format("Find out why rank {} stays at {}.", standing->rank, place(standing->user))
          : fmt::format("Find out where {} {}.", said(parting.odd.ranks),
                        is_or_are(parting.odd.ranks));
}

Findings detect(const graph::Examination& examination) {
  return findings_with(examination, Cause::kMissing, "missing-rank",
                       [&](const Explanation& explanation, Finding& finding) {
                         tell(examination, explanation, finding);
                       });
}

constexpr std::string_view kExplanation =
    R"(What you see: all ranks but one (or a few) wait in a collective.

Why: a collective ends only when every rank of its group has called it. This rank has not; the report says where it stands instead.
That may be a lock, a sleep, a file, a debugger, or code that waits for something else.

How it is recognised: its sequence number in the group is lower than that of the waiting ranks, or its stack is not in the collective.
No finer cause fitted.

The fix depends on what the rank does: begin at its line. Record the next run from its start, and the branch or loop that kept it
away is usually named.

    - $ torchrun --nproc_per_node=4 train.py
    + $ ddpdoctor run -- torchrun --nproc_per_node=4 train.py
)";

}  // namespace

extern const Detector missing_rank;
const Detector missing_rank = {.kind = "missing-rank",
                               .title = "A rank never joined a collective",
                               .explanation = kExplanation,
                               .detect = detect,
                               .specificity = kPlainFact};

}  // namespace ddpdoctor::detectors
