// SPDX-License-Identifier: Apache-2.0
// marked-ready-twice: DistributedDataParallel counts each parameter once per backward; reentrant
// checkpointing, shared parameters and two backward passes over one forward violate this.
#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/used_twice.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors::marked_ready_twice {
namespace {

constexpr std::string_view kKind = "marked-ready-twice";

/// The traceback ends in backward(); the cause of a second visit to a parameter is a line of the
/// model.
void tell_lines(const UsedTwice& used, Finding& finding) {
  const model::CallSite& first = used.places.front();
  std::size_t at = 0;
  for (const model::CallSite& place : used.places) {
    Location line{.rank = std::nullopt,
                  .ranks = {},
                  .file = place.file,
                  .line = place.line,
                  .function = place.function,
                  .note = used.by_checkpoint ? "this checkpoint runs its own backward"
                                             : used.module + " is called here"};
    finding.locations.insert(finding.locations.begin() + static_cast<std::ptrdiff_t>(at++),
                             std::move(line));
  }
  finding.evidence.push_back({.rank = std::nullopt, .text = finding.summary});
  const std::string whom =
      finding.culprits.empty() ? std::string("a rank") : said(finding.culprits);
  finding.summary =
      used.by_checkpoint
          ? fmt::format(
                "{} used a parameter twice in one backward of DistributedDataParallel: the "
                "reentrant checkpoint ({}:{}) runs a second one",
                whom, base::file_name(first.file), first.line)
          : fmt::format(
                "{} used a parameter twice in one backward of DistributedDataParallel: "
                "`{}` is called {} times in one forward ({}:{})",
                whom, used.module, used.places.size(), base::file_name(first.file), first.line);
  finding.fix =
      used.by_checkpoint
          ? fmt::format(
                "Pass use_reentrant=False to checkpoint ({}:{}), or pass static_graph=True "
                "to DistributedDataParallel.",
                base::file_name(first.file), first.line)
          : fmt::format(
                "Call `{}` once per forward, or pass static_graph=True to "
                "DistributedDataParallel.",
                used.module);
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_from_text(examination, kKind);
  const auto seen = findings.empty() ? std::vector<Sighting>{} : sightings(examination.job, kKind);
  if (findings.size() != 1 || seen.empty()) {
    // If there are several backward passes, the source does not show which belongs to which line.
    return findings;
  }
  const UsedTwice used = used_twice(examination.job, seen.front().line);
  if (!used.places.empty()) {
    tell_lines(used, findings.front());
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A parameter was used twice in one backward of DDP",
    .explanation = R"(What you see: "Expected to mark a variable ready only once".

Why: DDP reduces a bucket as soon as each of its parameters is ready. If a parameter becomes ready a second time, its bucket has
already been reduced.

How ddpdoctor knows: from torch's message, with your line in its traceback. The source of the model shows which checkpoints are
reentrant (no use_reentrant=False), or which module one forward calls twice.

Fix:
    - checkpoint(block, x)
    + checkpoint(block, x, use_reentrant=False)
or DistributedDataParallel(model, static_graph=True).)",
    .detect = detect,
    .specificity = kPlaceOfCause,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::marked_ready_twice
