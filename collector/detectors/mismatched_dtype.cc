// SPDX-License-Identifier: Apache-2.0
// Different element types in one collective: gloo and NCCL may "succeed" with wrong numbers, so
// this is reported even if nothing hangs.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/ddp_constructor.h"
#include "collector/detectors/partings/disagreed.h"
#include "collector/detectors/partings/empty_metric.h"

namespace ddpdoctor::detectors::mismatched_dtype {
namespace {

Findings detect(const graph::Examination& examination) {
  Findings findings;
  for (const graph::GroupView& view : examination.groups) {
    const graph::Divergence* divergence = view.disagreement(graph::Disagreement::kDtype);
    if (divergence == nullptr || is_between_models(examination, *divergence) ||
        is_out_of_step(examination, *divergence)) {
      continue;
    }
    const Disagreed disagreed = disagreed_at(examination, *divergence);
    Finding finding = finding_of(examination, *divergence, disagreed);
    finding.kind = "mismatched-dtype";
    finding.summary =
        fmt::format("{} passed {} elements to {}, but {} passed {}", said(disagreed.named),
                    disagreed.odd_call->dtype, call_name(examination.job, *disagreed.rest_call),
                    said(disagreed.rest), disagreed.rest_call->dtype);
    finding.fix = "Cast to the same type on every rank before the call (tensor.to(torch.float32)).";
    tell_empty_metric(examination, disagreed, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: wrong numbers, a crash of one rank, or nothing at all.

Why: the library copies bytes. If one rank passes bfloat16 and another float32, lengths and values are misread; gloo and NCCL do not
compare the types.

How ddpdoctor knows: group, sequence number and operation are the same, but the element type differs in the records. ddpdoctor also
reports this for a job that makes progress.

Fix: use one type on all ranks.

    -    dist.all_reduce(loss)
    +    dist.all_reduce(loss.float())
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "mismatched-dtype",
                           .title = "Ranks pass different element types to one collective",
                           .explanation = kExplanation,
                           .detect = detect,
                           .effect = Effect::kWrongNumbers};

}  // namespace ddpdoctor::detectors::mismatched_dtype
