// SPDX-License-Identifier: Apache-2.0
// dataloader-worker-stuck: a rank waits for its next batch, and the DataLoader worker that should
// deliver it hangs in the user's __getitem__, in a lock or in input/output. The other ranks wait
// for that rank in a collective, where the hang is visible.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/lost_semaphore.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/servers.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::dataloader_worker_stuck {
namespace {

constexpr std::string_view kKind = "dataloader-worker-stuck";

/// A batch that takes longer is not merely slow to load; below this, a sleeping worker may be
/// reading or pacing itself.
constexpr double kLongBatchSeconds = 30;

/// The main thread, or the pin-memory thread behind it, reads the workers' queue.
bool rank_waits_for_batch(const model::Process& rank) {
  const model::Thread* main = model::main_thread(rank);
  return main != nullptr && waits_for_batch(*main);
}

bool long_without_progress(const model::JobModel& job) {
  return job.seconds_without_progress.value_or(0) >= kLongBatchSeconds;
}

bool is_stopped(const model::Process& process) {
  return process.state == 'T';
}

std::string what_it_does(const model::JobModel& job, const model::Process& worker,
                         const model::Thread& thread) {
  if (is_stopped(worker)) {
    return "is stopped (state T)";
  }
  if (waits_on(thread, "timer") != nullptr) {
    return "is sleeping";
  }
  if (thread.waits_on && !thread.waits_on->kind.empty() && thread.waits_on->kind != "other") {
    const auto path = target_path(*thread.waits_on);
    return fmt::format("is waiting on a {}{}{}", thread.waits_on->kind, path ? " " : "",
                       path.value_or(""));
  }
  if (waits_for_private_lock(job, thread)) {
    return "is waiting for a lock";
  }
  if (thread.state == 'D') {
    return "is in uninterruptible input/output";
  }
  return asleep(thread) ? "is sleeping" : "is computing";
}

/// Waits for input from outside the job: a slow server, a pipe without a writer so far.
bool waits_for_strangers(const model::JobModel& job, const model::Thread& thread) {
  constexpr std::array<std::string_view, 3> kChannels = {"fifo", "pipe", "socket"};
  if (!thread.waits_on ||
      std::find(kChannels.begin(), kChannels.end(), thread.waits_on->kind) == kChannels.end()) {
    return false;
  }
  const auto peer = target_pid(*thread.waits_on);
  return !peer || model::process(job, *peer) == nullptr;
}

/// A sleep, a computation or a download may end by itself; a wait in a poll loop, for a lock, a
/// device or a process of the job need not.
Confidence how_sure(const model::JobModel& job, const model::Process& worker,
                    const model::Thread& thread, Confidence still) {
  if (long_without_progress(job)) {
    return still;
  }
  const model::WaitsOn* timer = waits_on(thread, "timer");
  const bool for_long = timer != nullptr && timer->limit.value_or(0) >= kLongBatchSeconds;
  const bool may_end =
      !asleep(thread) || (sleeps_by_choice(thread) && !polls(job, thread) && !for_long) ||
      waits_for_strangers(job, thread) || graph::its_server_works(job, worker, thread);
  return may_end ? Confidence::kPossible : still;
}

std::optional<Suspect> stuck_worker(const graph::Examination& examination,
                                    const model::Process& rank, const model::Process& worker,
                                    Confidence still) {
  const model::Thread* main = model::main_thread(worker);
  if (!alive(worker) || main == nullptr || waits_for_indices(*main)) {
    return std::nullopt;
  }
  const model::Frame* user = own_user_frame(*main);
  if (user == nullptr) {
    return std::nullopt;  // between batches: no user line to name
  }
  if (graph::standing_of(examination.job, examination.history, worker, *main).moved) {
    return std::nullopt;  // it makes progress with its batch: slow, not stuck
  }
  const std::string doing = what_it_does(examination.job, worker, *main);
  Suspect suspect = suspect_in(examination, worker, main);
  suspect.confidence = how_sure(examination.job, worker, *main, still);
  const std::string number = worker.pid > 0 ? fmt::format(" {}", worker.pid) : std::string();
  suspect.note = fmt::format("DataLoader worker{} {} here", number, doing);
  suspect.evidence = fmt::format("{} waits for a batch; its DataLoader worker{} {} ({})",
                                 named(rank.pid, "the rank"), number, doing, place(suspect.place));
  return suspect;
}

/// All of these workers wait for a semaphore that no process can release any more.
void tell_lost_semaphore(const graph::Examination& examination, const std::set<pid_t>& lost,
                         const std::vector<Suspect>& there, std::string_view who_waits,
                         Finding& finding) {
  const bool all = std::all_of(there.begin(), there.end(), [&lost](const Suspect& suspect) {
    return lost.contains(suspect.process->pid);
  });
  if (!all) {
    return;
  }
  const bool many = there.size() > 1;
  finding.summary = fmt::format(
      "{} for a batch: {} wait{} for a semaphore ({}) that no process is left to release{}",
      who_waits,
      many ? fmt::format("{} DataLoader workers", there.size())
           : std::string("a DataLoader worker"),
      many ? "" : "s", place(there.front().place), and_who_waits(finding));
  finding.fix = kReleaseSemaphore;
  finding.confidence =
      finding.confidence == Confidence::kLikely && examination.job.observations.size() > 1
          ? Confidence::kCertain
          : finding.confidence;
}

Findings detect(const graph::Examination& examination) {
  const auto still = stuck(examination);
  std::vector<Suspect> suspects;
  for (const model::Process* rank : processes(examination.job)) {
    if (!still || rank->role != model::Role::kRank || !rank_waits_for_batch(*rank)) {
      continue;
    }
    for (const model::Process* worker : children_of(examination.job, *rank)) {
      if (worker->role != model::Role::kDataLoaderWorker) {
        continue;
      }
      if (auto suspect = stuck_worker(examination, *rank, *worker, *still)) {
        suspects.push_back(std::move(*suspect));
      }
    }
  }
  if (suspects.empty()) {  // with timeout=, the DataLoader itself raises
    return findings_from_text(examination, kKind);
  }
  const std::set<pid_t> lost = waiting_for_lost_semaphore(examination);
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    const std::string who_waits = who(there) + (finding.culprits.size() > 1 ? " wait" : " waits");
    finding.summary = fmt::format("{} for a batch: {} DataLoader worker is stuck ({}){}", who_waits,
                                  finding.culprits.size() > 1 ? "a" : "its",
                                  place(there.front().place), and_who_waits(finding));
    const model::Process& worker = *there.front().process;
    if (is_stopped(worker)) {
      finding.summary = fmt::format("{} for a batch of DataLoader worker {}, which was stopped{}",
                                    who_waits, worker.pid, and_who_waits(finding));
      finding.fix = fmt::format(
          "Run `kill -CONT {}`, then check what stopped it (SIGSTOP, SIGTTIN, a debugger).",
          worker.pid);
      findings.push_back(std::move(finding));
      continue;
    }
    finding.fix = fmt::format(
        "Make {} return or raise: set a timeout on its wait, and pass timeout= to the DataLoader "
        "so that a stuck worker raises.",
        there.front().place.function.empty() ? "the dataset" : there.front().place.function);
    tell_lost_semaphore(examination, lost, there, who_waits, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A DataLoader worker never delivers its batch",
    .explanation =
        R"(What you see: all ranks but one are in all_reduce or backward; that one is in `for batch in loader`. Nothing is
printed, and the GPU of that rank is idle.

Why: the worker process that should deliver the next batch is blocked in the dataset: by a lock, a pipe, a file system, or a loop that
waits for a file. DataLoader waits without limit unless timeout= is given.

How ddpdoctor knows: the rank's main thread waits in dataloader.py, and one of its workers is at the same line of your code in two
snapshots. Workers that wait for indices are idle and are not accused. If they wait for a semaphore, and every process that
could release it waits for it, too, it was not released after an exception. In a log: "DataLoader timed out after N seconds".

Fix:
    - DataLoader(dataset, num_workers=4)
    + DataLoader(dataset, num_workers=4, timeout=120)
and limit the wait in the dataset.)",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors::dataloader_worker_stuck
