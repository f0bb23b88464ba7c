// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/inherited_lock.h"

#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// The processes that wait for one lock.
struct Waiters {
  std::string path;
  model::RankSet ranks;
  std::map<model::CallSite, model::RankSet> places;
};

/// The lock that the thread waits for, and the child that has the locked file open.
struct KeptLock {
  const model::Process* heir = nullptr;
  std::string path;
};

/// Nothing if the process that took the lock has the file open.
std::optional<KeptLock> lock_awaited_by(const model::JobModel& job, const model::Process& process,
                                        const model::Thread& thread) {
  if (!thread.waits_on || thread.waits_on->kind != "file-lock") {
    return std::nullopt;
  }
  const auto pid = target_pid(*thread.waits_on);
  for (const model::Fact* fact : model::facts(job, "file-lock")) {
    if (pid && fact->number("waiting_pid") == process.pid && fact->number("heir_pid") == *pid) {
      const model::Process* const heir = model::process(job, *pid);
      return heir != nullptr && alive(*heir)
                 ? std::optional(KeptLock{.heir = heir, .path = fact->text("path").value_or("")})
                 : std::nullopt;
    }
  }
  return std::nullopt;
}

/// The parent's line at the fork: a forked child has its parent's frames below its own start.
std::optional<model::CallSite> fork_in(const model::Process& child) {
  const model::Thread* const main = model::main_thread(child);
  if (main == nullptr) {
    return std::nullopt;
  }
  const model::Frame* const start =
      model::find_python_frame(*main, "_bootstrap", "multiprocessing/process.py");
  for (const model::Frame* const frame : model::user_frames(*main)) {
    if (start != nullptr && frame > start) {
      return model::call_site(*frame);
    }
  }
  return std::nullopt;
}

Finding finding_of(const graph::Examination& examination, std::string_view kind,
                   const model::Process& heir, const Waiters& waiters, Confidence still) {
  Finding finding;
  finding.kind = kind;
  // Two facts: the wait in the stack, and the kernel's list of those who have the locked file open.
  finding.confidence = still == Confidence::kLikely ? Confidence::kCertain : still;
  finding.waiting = waiters.ranks;
  const auto rank = served_rank(examination.job, heir);
  const std::string parent =
      rank ? said(model::RankSet{*rank}) : fmt::format("process {}", heir.ppid);
  const std::string file = waiters.path.empty() ? "a file" : waiters.path;
  if (rank) {
    finding.culprits.insert(*rank);
  }
  finding.summary = fmt::format(
      "{} for the lock of {}, which process {} keeps: {} forked it while it held the lock",
      ranks_do(waiters.ranks, "waits", "wait"), file, heir.pid, parent);
  if (const auto fork = fork_in(heir)) {
    finding.locations.push_back(location(
        *fork, finding.culprits,
        fmt::format("{} forked process {} here and holds the lock in it", parent, heir.pid)));
  }
  for (const auto& [site, ranks] : waiters.places) {
    finding.locations.push_back(
        location(site, ranks,
                 ranks_do(ranks, "is waiting here for the lock", "are waiting here for the lock")));
  }
  finding.evidence.push_back(
      {.rank = rank,
       .text = fmt::format("only process {} has the locked file open; {} has closed it", heir.pid,
                           parent)});
  finding.fix =
      "Release the lock with `fcntl.flock(fd, fcntl.LOCK_UN)` before the file is closed, or start "
      "the child outside the lock: a fork shares the open file, and closing it in the parent does "
      "not release the lock. Now: end the child.";
  finding.details["pid"] = static_cast<std::int64_t>(heir.pid);
  if (!waiters.path.empty()) {
    finding.details["path"] = waiters.path;
  }
  return finding;
}

}  // namespace

bool waits_for_inherited_lock(const model::JobModel& job, const model::Process& process,
                              const model::Thread& thread) {
  return lock_awaited_by(job, process, thread).has_value();
}

Findings inherited_locks(const graph::Examination& examination, std::string_view kind) {
  const model::JobModel& job = examination.job;
  const auto still = stuck(examination);
  std::map<pid_t, Waiters> by_heir;
  for (const model::Process* const process : processes(job)) {
    const model::Thread* const main = model::main_thread(*process);
    const auto rank = served_rank(job, *process);
    if (!still || main == nullptr || !rank || !alive(*process)) {
      continue;
    }
    if (const auto lock = lock_awaited_by(job, *process, *main)) {
      Waiters& waiters = by_heir[lock->heir->pid];
      waiters.path = lock->path;
      waiters.ranks.insert(*rank);
      if (const model::Frame* const frame = own_user_frame(*main)) {
        waiters.places[model::call_site(*frame)].insert(*rank);
      }
    }
  }
  Findings findings;
  for (const auto& [pid, waiters] : by_heir) {
    findings.push_back(finding_of(examination, kind, *model::process(job, pid), waiters, *still));
  }
  return findings;
}

}  // namespace ddpdoctor::detectors
