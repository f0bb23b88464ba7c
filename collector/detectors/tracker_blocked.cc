// SPDX-License-Identifier: Apache-2.0
// tracker-blocked: an experiment tracker (wandb, TensorBoard, MLflow, Comet …) blocks one rank: its
// server does not answer or its queue is full. Usually rank 0; the others wait in the next
// collective.
#include <array>

#include <fmt/format.h>

#include "base/folders.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::tracker_blocked {
namespace {

constexpr std::string_view kKind = "tracker-blocked";

constexpr std::array<std::string_view, 9> kTrackers = {"wandb",   "tensorboard", "tensorboardX",
                                                       "mlflow",  "comet_ml",    "neptune",
                                                       "clearml", "swanlab",     "aim"};

/// The tracker package of a frame, if it is one: "/site-packages/wandb/sdk/…".
std::string_view tracker_of(const model::Frame& frame) {
  for (const std::string_view tracker : kTrackers) {
    if (frame.language == model::Language::kPython && base::lies_in(frame.file, tracker)) {
      return tracker;
    }
  }
  return {};
}

/// The innermost line outside the tracker that called it; nullptr if the thread is in no tracker.
const model::Frame* caller_of_tracker(const model::Thread& thread, std::string_view& tracker) {
  for (const model::Frame& frame : thread.frames) {
    if (const std::string_view name = tracker_of(frame); !name.empty()) {
      tracker = name;
    } else if (frame.language == model::Language::kPython && model::is_user_file(frame.file)) {
      return tracker.empty() ? nullptr : &frame;
    }
  }
  return nullptr;
}

std::optional<Suspect> blocked(const graph::Examination& examination,
                               const graph::Standing& standing, Confidence still) {
  const model::Thread* main =
      standing.process == nullptr ? nullptr : model::main_thread(*standing.process);
  std::string_view tracker;
  const model::Frame* caller = main == nullptr ? nullptr : caller_of_tracker(*main, tracker);
  if (caller == nullptr || !asleep(*main) || standing.waits_for_ranks()) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, *standing.process, main);
  suspect.rank = standing.rank;
  suspect.place = model::call_site(*caller);
  // A request to a server sometimes takes seconds; waiting ranks make it the cause.
  suspect.confidence = waiting_ranks(examination).empty() ? Confidence::kPossible : still;
  suspect.note = fmt::format("rank {} is waiting here in {}", standing.rank, tracker);
  suspect.evidence =
      fmt::format("the main thread of rank {} is asleep inside {}", standing.rank, tracker);
  return suspect;
}

Findings detect(const graph::Examination& examination) {
  const auto still = stuck(examination);
  std::vector<Suspect> suspects;
  for (const graph::Standing& standing : examination.standings) {
    if (auto suspect = still ? blocked(examination, standing, *still) : std::nullopt) {
      suspects.push_back(std::move(*suspect));
    }
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    finding.summary = fmt::format("{} {} blocked by an experiment tracker ({}){}", who(there),
                                  is_or_are(finding.culprits), place(there.front().place),
                                  and_who_waits(finding));
    finding.fix =
        "Use the offline or asynchronous mode of the tracker (WANDB_MODE=offline), set its "
        "timeouts, and call it outside the training step.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "An experiment tracker blocks a rank",
    .explanation =
        R"(What you see: rank 0 is in wandb.init, run.log or SummaryWriter.add_scalar; the others are in a collective.

Why: the tracker talks to a server or to a helper process, and waits for it in the middle of a step.

How ddpdoctor knows: your line has called the tracker, whose frames sleep in two snapshots.

Fix:
    $ WANDB_MODE=offline torchrun ...)",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors::tracker_blocked
