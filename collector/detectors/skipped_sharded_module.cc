// SPDX-License-Identifier: Apache-2.0
// A sharded unit (FSDP, ZeRO-3) runs on some ranks only: they gather its parameters, and the others
// never join.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"

namespace ddpdoctor::detectors {
namespace {

Findings detect(const graph::Examination& examination) {
  return findings_with(
      examination, Cause::kSharded, "skipped-sharded-module",
      [&](const Explanation& explanation, Finding& finding) {
        const Parting& parting = explanation.parting;
        finding.summary =
            fmt::format("{} skipped a sharded module; {} gathering its parameters ({})",
                        said(parting.odd.ranks), ranks_do(parting.rest.ranks, "is", "are"),
                        waiting_call(examination, explanation));
        finding.fix = fmt::format(
            "Run the module ({}) on every rank. If a batch has no input for it, use a dummy input "
            "and add 0 * output to the loss.",
            line_of(parting.rest.site()));
      });
}

constexpr std::string_view kExplanation =
    R"(What you see: some ranks are in an all_gather inside FSDP or ZeRO-3 before a module's forward; the others are in another module, in
the loss or in backward.

Why: a sharded module gathers its parameters from all ranks each time it runs. If the batch of a rank has no image, or no token for an
expert, and the module is skipped there, the others wait for its shard.

How ddpdoctor knows: the waiting ranks are in the gather of a sharded module, on a line that the odd ranks are not on.

Fix: run it in every step.

    -    if images is not None:
    -        h = h + self.vision(images)
    +    pixels = images if images is not None else self.dummy
    +    h = h + self.vision(pixels) * float(images is not None)
)";

}  // namespace

extern const Detector skipped_sharded_module;
const Detector skipped_sharded_module = {.kind = "skipped-sharded-module",
                                         .title = "A sharded module ran on some ranks only",
                                         .explanation = kExplanation,
                                         .detect = detect};

}  // namespace ddpdoctor::detectors
