// SPDX-License-Identifier: Apache-2.0
// Evaluation on one rank through the DDP-wrapped model: DDP broadcasts its buffers before the
// forward, and the other ranks are not there.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_finding.h"

namespace ddpdoctor::detectors {
namespace {

void tell(const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary = fmt::format(
      "{} alone ran the forward of DistributedDataParallel at {}, which broadcasts buffers; {} {} "
      "elsewhere",
      said(parting.odd.ranks), place(parting.odd.site()), said(parting.rest.ranks),
      is_or_are(parting.rest.ranks));
  finding.fix =
      fmt::format("Call model.module(...) instead of model(...) at {}, or evaluate on every rank.",
                  place(parting.odd.site()));
}

Findings detect(const graph::Examination& examination) {
  return findings_with(examination, Cause::kRankDdpForward, "rank0-only-ddp-forward", tell);
}

constexpr std::string_view kExplanation =
    R"(What you see: the job stands still at the first evaluation. Rank 0 is in DistributedDataParallel.forward (`_sync_buffers`), or already back
in training and off by one; the others are in a barrier or in backward.

Why: with buffers (BatchNorm) every forward of the wrapped model broadcasts them from rank 0, also under torch.no_grad() and in eval
mode. Called under `if rank == 0`, it has no partners.

How it is recognised: DDP's buffer broadcast stands on a line that a test of the rank leads to, on some ranks only.

The fix: evaluate the module inside.

     if rank == 0:
    -    score = evaluate(model)
    +    score = evaluate(model.module)
)";

}  // namespace

extern const Detector rank0_only_ddp_forward;
const Detector rank0_only_ddp_forward = {
    .kind = "rank0-only-ddp-forward",
    .title = "One rank alone runs the forward of the DDP-wrapped model",
    .explanation = kExplanation,
    .detect = detect};

}  // namespace ddpdoctor::detectors
