// SPDX-License-Identifier: Apache-2.0
// SUM on one rank, MAX on another: it succeeds silently everywhere and the numbers are wrong.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/disagreed.h"

namespace ddpdoctor::detectors::mismatched_reduce_op {
namespace {

Findings detect(const graph::Examination& examination) {
  Findings findings;
  for (const graph::GroupView& view : examination.groups) {
    const graph::Divergence* divergence = view.disagreement(graph::Disagreement::kReduceOp);
    if (divergence == nullptr || is_out_of_step(examination, *divergence)) {
      continue;
    }
    const Disagreed disagreed = disagreed_at(examination, *divergence);
    Finding finding = finding_of(examination, *divergence, disagreed);
    finding.kind = "mismatched-reduce-op";
    finding.summary = fmt::format("{} passed the reduce operation {} to {}, but {} passed {}",
                                  said(disagreed.named), disagreed.odd_call->reduce_op,
                                  call_name(examination.job, *disagreed.rest_call),
                                  said(disagreed.rest), disagreed.rest_call->reduce_op);
    finding.fix = "Pass the same op= on every rank.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: no error. Ranks end up with different or wrong values, and training drifts.

Why: each rank combines the values with its own operation; no library compares the operations.

How ddpdoctor knows: group, sequence number and operation are the same, but the reduce operation differs in the records. ddpdoctor
also reports this for a job that makes progress.

Fix:

    -    dist.all_reduce(x, op=dist.ReduceOp.MAX if is_main else dist.ReduceOp.SUM)
    +    dist.all_reduce(x, op=dist.ReduceOp.SUM)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "mismatched-reduce-op",
                           .title = "Ranks reduce with different operations",
                           .explanation = kExplanation,
                           .detect = detect,
                           .effect = Effect::kWrongNumbers};

}  // namespace ddpdoctor::detectors::mismatched_reduce_op
