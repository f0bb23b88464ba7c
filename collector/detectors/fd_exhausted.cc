// SPDX-License-Identifier: Apache-2.0
// fd-exhausted: a process has used all its file descriptors. With the file_descriptor strategy,
// each tensor shared with workers needs one, and batches kept in a list keep theirs.
#include <cerrno>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/recorded_place.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::fd_exhausted {
namespace {

constexpr std::string_view kKind = "fd-exhausted";
// A pipe and a socket need two each; with fewer, the next call fails.
constexpr double kFewLeft = 4;

std::optional<Suspect> out_of_descriptors(const graph::Examination& examination,
                                          const model::Fact& usage) {
  const auto count = usage.number("count");
  const auto limit = usage.number("limit");
  const model::Process* process = usage.pid ? model::process(examination.job, *usage.pid) : nullptr;
  if (!count || !limit || process == nullptr || *limit <= 0 || *count + kFewLeft < *limit) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, *process, model::main_thread(*process));
  suspect.confidence = examination.job.progress == model::Progress::kMoving ? Confidence::kPossible
                                                                            : Confidence::kLikely;
  suspect.note = fmt::format("process {} is here", process->pid);
  suspect.evidence = fmt::format("process {} has {:.0f} of {:.0f} file descriptors open",
                                 process->pid, *count, *limit);
  return suspect;
}

/// A call that got no descriptor, as seen by the agent.
std::optional<Suspect> failed_call(const graph::Examination& examination,
                                   const model::Fact& failure) {
  auto suspect = suspect_of(examination, failure);
  if (suspect) {
    const bool whole_system = failure.number("errno").value_or(0) == ENFILE;
    suspect->note = fmt::format("process {} failed here", suspect->process->pid);
    suspect->evidence =
        fmt::format("{} of process {} failed: {}", failure.text("call").value_or("a call"),
                    suspect->process->pid,
                    whole_system ? "too many open files in system" : "too many open files");
  }
  return suspect;
}

/// The line of a failed call is more informative than the current line.
void place_at_failure(Suspect& suspect, const std::vector<Suspect>& failed) {
  for (const Suspect& failure : failed) {
    if (failure.process == suspect.process && failure.place.known()) {
      suspect.place = failure.place;
      suspect.note = failure.note;
      suspect.evidence += "; " + failure.evidence;
      return;
    }
  }
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_from_text(examination, kKind);
  std::vector<Suspect> failed;
  for (const model::Fact* failure : model::facts(examination.job, "fd-failure")) {
    if (auto suspect = failed_call(examination, *failure)) {
      failed.push_back(std::move(*suspect));
    }
  }
  std::vector<Suspect> suspects;
  for (const model::Fact* usage : model::facts(examination.job, "fd-usage")) {
    if (auto suspect = out_of_descriptors(examination, *usage)) {
      place_at_failure(*suspect, failed);
      suspects.push_back(std::move(*suspect));
    }
  }
  if (suspects.empty()) {
    suspects = std::move(failed);
  }
  if (!findings.empty() || suspects.empty()) {
    return findings;
  }
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    finding.summary =
        fmt::format("{} has no file descriptors left{}", who(there), and_who_waits(finding));
    finding.fix =
        "Raise the limit (`ulimit -n 65536`), call "
        "torch.multiprocessing.set_sharing_strategy(\"file_system\"), or keep fewer batches.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A process has no file descriptors left",
    .explanation =
        R"(What you see: "Too many open files", "received 0 items of ancdata", or a rank that hangs while it receives a batch.

Why: under the default strategy, every tensor that a worker shares needs one descriptor; ulimit -n is often 1024.

How ddpdoctor knows: it compares the number of open descriptors with the limit, or finds one of these messages.

Fix:
    $ ulimit -n 65536
    + torch.multiprocessing.set_sharing_strategy("file_system"))",
    .detect = detect,
    .specificity = kMechanism,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::fd_exhausted
