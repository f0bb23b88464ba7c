// SPDX-License-Identifier: Apache-2.0
// orphan-process: ranks or DataLoader workers that outlive the process that started them. They keep
// GPU memory, shared memory and ports, and the next run fails or hangs.
#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::orphan_process {
namespace {

constexpr std::string_view kKind = "orphan-process";

/// Its parent exited, and init (or a container's pid 1) adopted it. In a container, pid 1 may be
/// the launcher or a rank, and a process with an unknown pid may be pid 1.
bool lost_its_parent(const model::JobModel& job, const model::Process& process) {
  if (process.ppid != 1 || process.pid == 1 || job.launcher_pid == 1) {
    return false;
  }
  const auto all = processes(job);
  return std::none_of(all.begin(), all.end(),
                      [](const model::Process* one) { return one->pid == 1 || one->pid == 0; });
}

/// Only torchrun's own ranks, or those of a launcher with a known pid, certainly had one; a shell
/// starts ranks and exits.
bool had_a_launcher(const model::JobModel& job, const model::Process& process) {
  const model::Process* launcher = model::process(job, job.launcher_pid.value_or(0));
  return process.environment.contains("TORCHELASTIC_RUN_ID") ||
         (job.launcher_pid.value_or(0) > 1 && job.launcher_pid != process.pid &&
          (launcher == nullptr || !alive(*launcher)));
}

/// The monitor saw it run after the failure of the command that started it.
bool outlived(const model::JobModel& job, const model::Process& process) {
  const auto orphans = model::facts(job, "orphan");
  return std::any_of(orphans.begin(), orphans.end(),
                     [&process](const model::Fact* fact) { return fact->pid == process.pid; });
}

std::optional<Suspect> orphan(const graph::Examination& examination,
                              const model::Process& process) {
  const bool worker = process.role == model::Role::kDataLoaderWorker;
  const bool rank = process.role == model::Role::kRank && had_a_launcher(examination.job, process);
  const bool lost = lost_its_parent(examination.job, process) && (worker || rank);
  const bool left = outlived(examination.job, process) &&
                    (worker || process.role == model::Role::kRank || process.rank);
  if (!alive(process) || !(lost || left)) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, process, model::main_thread(process));
  suspect.confidence = Confidence::kLikely;
  suspect.note = fmt::format("process {} is still running here", process.pid);
  suspect.evidence = fmt::format(
      "process {} ({}) {}: {} has exited", process.pid, model::role_name(process.role),
      left ? "is still running" : "is a child of process 1", worker ? "its rank" : "its launcher");
  return suspect;
}

Findings detect(const graph::Examination& examination) {
  std::vector<Suspect> suspects;
  for (const model::Process* process : processes(examination.job)) {
    if (auto suspect = orphan(examination, *process)) {
      suspects.push_back(std::move(*suspect));
    }
  }
  if (suspects.empty()) {
    return {};
  }
  Finding finding = accuse(examination, kKind, suspects);
  finding.summary =
      fmt::format("{} process{} of this job outlived the process that started {}", suspects.size(),
                  suspects.size() == 1 ? "" : "es", suspects.size() == 1 ? "it" : "them");
  finding.fix =
      "Run `ddpdoctor clean`: it lists orphaned processes and ends them after a question. End a "
      "job with SIGTERM to its launcher, not with `kill -9`.";
  return {std::move(finding)};
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Processes outlived their launcher",
    .explanation =
        R"(What you see: GPU memory, ports or /dev/shm stay in use after a job "ended"; the next run fails with out of memory or address in
use.

Why: the launcher or a rank was killed with SIGKILL and could not end its children.

How ddpdoctor knows: the parent of ranks that torchrun started, or of DataLoader workers, is process 1. Under run: it finds processes
that are still running after the command failed, or whose own parent was killed.

Fix:
    $ ddpdoctor clean)",
    .detect = detect,
    .specificity = kPlaceOfCause,
    .effect = Effect::kLeak,
};

}  // namespace ddpdoctor::detectors::orphan_process
