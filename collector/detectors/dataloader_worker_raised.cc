// SPDX-License-Identifier: Apache-2.0
// dataloader-worker-raised: the dataset raised in a worker process; the rank that requested the
// batch re-raises it, and the other ranks wait for that rank. The worker's own traceback, which
// follows the message, is the relevant one.
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/known_exceptions.h"

namespace ddpdoctor::detectors::dataloader_worker_raised {
namespace {

constexpr std::string_view kKind = "dataloader-worker-raised";

Findings detect(const graph::Examination& examination) {
  return findings_from_text(examination, kKind);
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A DataLoader worker raised",
    .explanation =
        R"(What you see: "Caught … in DataLoader worker process N", then "Original Traceback".

Why: an exception in __getitem__ or collate_fn ends the epoch on one rank only.

How ddpdoctor knows: from the message; the reported line is your innermost line in the original traceback.

Fix: correct that line. To get the exception in the main process:
    - loader = DataLoader(data, num_workers=8)
    + loader = DataLoader(data, num_workers=0))",
    .detect = detect,
    .specificity = kPlaceOfCause,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::dataloader_worker_raised
