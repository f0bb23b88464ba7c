// SPDX-License-Identifier: Apache-2.0
// A sharded unit (FSDP, ZeRO-3) runs on some ranks only: they gather its parameters, the others
// never come.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_finding.h"

namespace ddpdoctor::detectors {
namespace {

Findings detect(const graph::Examination& examination) {
  return findings_with(
      examination, Cause::kSharded, "skipped-sharded-module",
      [&](const Explanation& explanation, Finding& finding) {
        const Parting& parting = explanation.parting;
        finding.summary =
            fmt::format("{} did not run a sharded module whose parameters {} {} gathering ({})",
                        said(parting.odd.ranks), said(parting.rest.ranks),
                        is_or_are(parting.rest.ranks), waiting_call(examination, explanation));
        finding.fix = fmt::format(
            "Run the module at {} on every rank; where a batch has no input for it, use a dummy "
            "input and add 0 * output to the loss.",
            place(parting.rest.site()));
      });
}

constexpr std::string_view kExplanation =
    R"(What you see: some ranks are in an all_gather inside FSDP or ZeRO-3 before a module's forward; the others are in another module, in
the loss or in backward.

Why: a sharded module gathers its parameters from all ranks each time it runs. If the batch of a rank has no image, or no token for an
expert, and the module is skipped there, the others wait for its shard.

How it is recognised: the waiting ranks are in the gather of a sharded module, on a line that the odd ranks are not on.

The fix: always run it.

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
