// SPDX-License-Identifier: Apache-2.0
// Evaluation on one rank through the DDP-wrapped model: DDP broadcasts its buffers before the
// forward, and the other ranks do not join.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/unseen_decision.h"

namespace ddpdoctor::detectors::rank0_only_ddp_forward {
namespace {

void tell(const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary = fmt::format(
      "only {} ran the forward of DistributedDataParallel ({}), which broadcasts buffers; {} did "
      "not join",
      said(parting.odd.ranks), line_of(parting.odd.site()), said(parting.rest.ranks));
  finding.fix =
      fmt::format("Call model.module(...) instead of model(...) ({}), or evaluate on every rank.",
                  line_of(parting.odd.site()));
}

Findings detect(const graph::Examination& examination) {
  constexpr std::string_view kKind = "rank0-only-ddp-forward";
  Findings findings = findings_with(examination, Cause::kRankDdpForward, kKind, tell);
  return findings.empty() ? unseen_findings(examination, kKind) : findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: the job hangs at the first evaluation. Rank 0 is in DistributedDataParallel.forward (`_sync_buffers`), or already back
in training and one call ahead; the others are in a barrier or in backward.

Why: with buffers (BatchNorm) every forward of the wrapped model broadcasts them from rank 0, also under torch.no_grad() and in eval
mode. If the forward is called under `if rank == 0`, no other rank takes part in this broadcast.

How ddpdoctor knows: only some ranks are in DDP's buffer broadcast, on a line under a condition that tests the rank.

Fix: evaluate the wrapped module.

     if rank == 0:
    -    score = evaluate(model)
    +    score = evaluate(model.module)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "rank0-only-ddp-forward",
                           .title = "One rank alone runs the forward of the DDP-wrapped model",
                           .explanation = kExplanation,
                           .detect = detect};

}  // namespace ddpdoctor::detectors::rank0_only_ddp_forward
