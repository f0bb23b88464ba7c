// SPDX-License-Identifier: Apache-2.0
// dataloader-worker-raised: the dataset raised in a worker process; the rank that requested the
// batch re-raises it, and the other ranks wait for that rank. The worker's own traceback, which
// follows the message, is the relevant one.
#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors::dataloader_worker_raised {
namespace {

constexpr std::string_view kKind = "dataloader-worker-raised";

/// A spawned worker that failed while it imported the program again: it prints its own traceback,
/// and the DataLoader sees only that the worker exited.
Findings failed_to_start(const graph::Examination& examination) {
  auto lost = sightings(examination.job, "dataloader-worker-killed");
  std::erase_if(lost, [](const Sighting& one) {  // one that a signal ended raised nothing
    return one.line.find("exited unexpectedly") == std::string::npos;
  });
  if (lost.empty()) {
    return {};
  }
  std::vector<Suspect> suspects;
  for (const Traceback& one : tracebacks(examination.job)) {
    const bool of_worker = std::any_of(lost.begin(), lost.end(), [&one](const Sighting& other) {
      return !one.rank || !other.rank || one.rank == other.rank;
    });
    if (of_worker && starts_without_guard(one)) {
      Suspect suspect{.rank = one.rank, .place = one.place};
      suspect.confidence = Confidence::kLikely;
      suspect.note = "the worker imported the program again and reached this line";
      suspect.evidence =
          "log: RuntimeError: An attempt has been made to start a new process before the current "
          "process has finished its bootstrapping phase.";
      suspects.push_back(std::move(suspect));
    }
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    finding.summary = fmt::format(
        "a DataLoader worker{} raised at its start: the program starts processes outside `if "
        "__name__ == \"__main__\"`{}",
        finding.culprits.empty() ? std::string() : fmt::format(" of {}", said(finding.culprits)),
        placed(there.front().place));
    finding.evidence.push_back({.rank = lost.front().rank, .text = "log: " + lost.front().line});
    finding.fix = kGuardFix;
    findings.push_back(std::move(finding));
  }
  return findings;
}

Findings detect(const graph::Examination& examination) {
  Findings told = findings_from_text(examination, kKind);
  std::for_each(told.begin(), told.end(),
                [&](Finding& one) { add_batch_readers(examination, one); });
  return told.empty() && !examination.job.logs.empty() ? failed_to_start(examination) : told;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A DataLoader worker raised",
    .explanation =
        R"(What you see: "Caught … in DataLoader worker process N", then "Original Traceback".

Why: an exception in __getitem__ or collate_fn ends the epoch on one rank only.

How ddpdoctor knows: from the message; the reported line is your innermost line in the original traceback. A worker started by spawn
or forkserver prints its own traceback if it cannot start.

Fix: correct that line. To get the exception in the main process:
    - loader = DataLoader(data, num_workers=8)
    + loader = DataLoader(data, num_workers=0))",
    .detect = detect,
    .specificity = kPlaceOfCause,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::dataloader_worker_raised
