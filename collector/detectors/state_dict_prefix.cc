// SPDX-License-Identifier: Apache-2.0
// state-dict-prefix: a checkpoint of the wrapped model is loaded into the bare one, or vice versa:
// every key differs by "module.".
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/known_exceptions.h"

namespace ddpdoctor::detectors::state_dict_prefix {
namespace {

constexpr std::string_view kKind = "state-dict-prefix";

Findings detect(const graph::Examination& examination) {
  return findings_from_text(examination, kKind);
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Checkpoint and model differ by the prefix `module.`",
    .explanation =
        R"(What you see: "Missing key(s) in state_dict" and "Unexpected key(s) in state_dict", the same names with and without "module.".

Why: DistributedDataParallel holds the model as its attribute `module`.

How ddpdoctor knows: from torch's message, with your line that loads the checkpoint.

Fix:
    - torch.save(ddp_model.state_dict(), path)
    + torch.save(ddp_model.module.state_dict(), path))",
    .detect = detect,
    .specificity = kCause,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::state_dict_prefix
