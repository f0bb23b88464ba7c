// SPDX-License-Identifier: Apache-2.0
// fork-after-cuda: CUDA was initialised, then the process forked (a DataLoader worker,
// multiprocessing); the child may not use CUDA and raises, or hangs. The message of torch says so
// itself.
#include "collector/detectors/detector.h"
#include "collector/detectors/known_exceptions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "fork-after-cuda";

Findings detect(const graph::Examination& examination) {
  return findings_from_text(examination, kKind);
}

}  // namespace

extern const Detector fork_after_cuda;
const Detector fork_after_cuda{
    .kind = kKind,
    .title = "CUDA was started before a fork",
    .explanation =
        R"(What you see: "Cannot re-initialize CUDA in forked subprocess" from a DataLoader worker or another child; its rank and the others
wait or fail after it.

Why: a CUDA context does not survive fork.

How it is recognised: torch's message, with the user's line of its traceback.

Fix:
    - loader = DataLoader(dataset, num_workers=4)
    + loader = DataLoader(dataset, num_workers=4, multiprocessing_context="spawn")
or keep tensors on the CPU in the dataset.)",
    .detect = detect,
    .specificity = kMechanism,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors
