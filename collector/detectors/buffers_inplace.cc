// SPDX-License-Identifier: Apache-2.0
// buffers-inplace: with broadcast_buffers=True, each forward of DistributedDataParallel overwrites
// the buffers (BatchNorm's running statistics); two forwards before one backward change what the
// first one saved.
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/ddp_in_use.h"
#include "collector/detectors/evidence/known_exceptions.h"

namespace ddpdoctor::detectors::buffers_inplace {
namespace {

constexpr std::string_view kKind = "buffers-inplace";

/// torch writes the same message for any tensor that the user's own code changes in place: without
/// DistributedDataParallel it is an ordinary exception, and with it the buffers are only the most
/// common cause.
Findings detect(const graph::Examination& examination) {
  Findings findings = findings_from_text(examination, kKind);
  const auto ddp = findings.empty() ? std::nullopt : ddp_in_use(examination);
  if (!ddp) {
    return {};
  }
  for (Finding& finding : findings) {
    finding.evidence.push_back(*ddp);
    finding.confidence = at_most(finding.confidence, Confidence::kLikely);
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A tensor that backward needs was changed in place",
    .explanation =
        R"(What you see: "one of the variables needed for gradient computation has been modified by an inplace operation", only under DDP.

Why: DDP copies rank 0's buffers into the model at every forward, in place.

How ddpdoctor knows: from torch's message, with your line in its traceback, in a job that uses DistributedDataParallel. An in-place
change in your own code prints the same message, so this is never more than likely.

Fix:
    - DistributedDataParallel(model)
    + DistributedDataParallel(model, broadcast_buffers=False)
or one forward per backward.)",
    .detect = detect,
    .specificity = kCause,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::buffers_inplace
