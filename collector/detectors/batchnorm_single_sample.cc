// SPDX-License-Identifier: Apache-2.0
// batchnorm-single-sample: the last batch of one rank has a single sample. BatchNorm cannot
// normalize it and raises there; the other ranks wait.
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/known_exceptions.h"

namespace ddpdoctor::detectors::batchnorm_single_sample {
namespace {

constexpr std::string_view kKind = "batchnorm-single-sample";

Findings detect(const graph::Examination& examination) {
  return findings_from_text(examination, kKind);
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "BatchNorm got a single sample",
    .explanation =
        R"(What you see: "Expected more than 1 value per channel when training" on one rank, late in the epoch.

Why: the variance of one value is zero; uneven shards leave one sample over.

How ddpdoctor knows: from torch's message, with your line in its traceback.

Fix:
    - DataLoader(dataset, batch_size=32, sampler=sampler)
    + DataLoader(dataset, batch_size=32, sampler=sampler, drop_last=True))",
    .detect = detect,
    .specificity = kCause,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::batchnorm_single_sample
