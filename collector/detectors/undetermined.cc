// SPDX-License-Identifier: Apache-2.0
// The last resort: ranks wait and nothing moves, but the evidence does not say why. Names what to
// capture next.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collector/detectors/agreement.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/wording.h"

namespace ddpdoctor::detectors {
namespace {

// What would decide it, by what is missing.
std::vector<std::string> to_capture(const graph::Examination& examination) {
  std::vector<std::string> wanted;
  const model::RankSet unseen = unobserved_ranks(examination);
  if (!unseen.empty()) {
    wanted.push_back(fmt::format("stacks of {} (attach as the same user or as root, on every node)",
                                 said(unseen)));
  }
  if (examination.history.empty()) {
    wanted.emplace_back(
        "the recorded collectives (ddpdoctor run, or TORCH_FR_BUFFER_SIZE=2000 and a "
        "flight-recorder dump)");
  }
  if (!examination.still()) {
    wanted.emplace_back("a second observation some seconds later");
  }
  if (wanted.empty()) {
    wanted.emplace_back("a recording of the whole run (ddpdoctor run -- ...)");
  }
  return wanted;
}

Findings detect(const graph::Examination& examination) {
  const model::RankSet waiting = waiting_ranks(examination);
  const bool hangs = examination.still() || (examination.job.ended && !waiting.empty());
  if (waiting.empty() || !hangs) {
    return {};
  }
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  finding.waiting = waiting;
  const graph::Standing* standing = examination.standing(waiting.front());
  finding.summary = fmt::format("{} {} and nothing moves, but the evidence does not say for whom",
                                said(waiting), waiting.size() == 1 ? "waits" : "wait");
  finding.fix = fmt::format("Capture {}.", fmt::join(to_capture(examination), "; "));
  if (standing->user.known()) {
    finding.locations.push_back(
        location(standing->user, waiting, waited_here(examination.job, waiting)));
  }
  add_whereabouts(finding, examination, waiting);
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: ranks wait, nothing moves, and no cause was recognised.

Why: a rank could not be observed, there are no records of the collectives, or the job hangs in a way that ddpdoctor does not know.

How it is recognised: by nothing; no other kind fitted what was seen.

The fix is to see more: observe all ranks at once (on every node, with the right to read them), start the job with `ddpdoctor run`, and attach twice,
some seconds apart.

    - $ torchrun --nproc_per_node=4 train.py
    + $ ddpdoctor run -- torchrun --nproc_per_node=4 train.py
)";

}  // namespace

extern const Detector undetermined;
const Detector undetermined = {.kind = "undetermined",
                               .title = "The evidence does not decide",
                               .explanation = kExplanation,
                               .detect = detect,
                               .specificity = kSaysNothing};

}  // namespace ddpdoctor::detectors
