// SPDX-License-Identifier: Apache-2.0
// marked-ready-twice: DistributedDataParallel counts each parameter once per backward; reentrant
// checkpointing, shared parameters and two backwards over one forward break that.
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/known_exceptions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "marked-ready-twice";

Findings detect(const graph::Examination& examination) {
  return findings_from_text(examination, kKind);
}

}  // namespace

extern const Detector marked_ready_twice;
const Detector marked_ready_twice{
    .kind = kKind,
    .title = "A parameter was used twice in one backward of DDP",
    .explanation = R"(What you see: "Expected to mark a variable ready only once".

Why: DDP reduces a bucket when each of its parameters is ready once; a second time means the bucket has gone already.

How it is recognised: torch's message, with the user's line of its traceback.

Fix:
    - checkpoint(block, x)
    + checkpoint(block, x, use_reentrant=False)
or DistributedDataParallel(model, static_graph=True).)",
    .detect = detect,
    .specificity = kPlaceOfCause,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors
