// SPDX-License-Identifier: Apache-2.0
// stale-file-lock: a build or a download was killed and left its lock file behind; every later run
// waits for an owner that no longer exists (torch's file_baton for extensions, filelock, a user's
// own poll loop on exists(lock)).
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/held_path.h"
#include "collector/detectors/evidence/inherited_lock.h"
#include "collector/detectors/evidence/lock_askers.h"
#include "collector/detectors/evidence/polled_lock.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/told_locks.h"
#include "collector/detectors/evidence/unknown_log.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/python_waits.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::stale_file_lock {
namespace {

constexpr std::string_view kKind = "stale-file-lock";
constexpr std::string_view kNoLocks = "[Errno 37] No locks available";

/// Waits in torch's lock of an extension that another process builds, or in a copy of it: projects
/// that compile their own kernels have one.
bool waits_for_baton(const model::Thread& thread) {
  return python_frame_in(thread, "/file_baton.py", {"wait"}) != nullptr;
}

/// Its frames show a wait for the release or removal of a lock file.
bool waits_for_lock_file(const model::JobModel& job, const model::Thread& thread) {
  if (const model::WaitsOn* known = waits_on(thread, "lock-file")) {
    return !known->limit;  // with a timeout it gives up by itself
  }
  if (waits_for_baton(thread)) {
    return true;
  }
  for (const model::Frame& frame : thread.frames) {
    if (frame.language == model::Language::kPython && is_of_filelock(frame.file)) {
      return true;
    }
  }
  return polls_for_lock(job, thread);
}

/// Its innermost code is that of a wait for another thread of its process.
bool waits_for_a_thread(const model::Thread& thread) {
  const model::Frame* inner = model::innermost_python(thread);
  if (inner == nullptr || !asleep(thread)) {
    return false;
  }
  const model::PythonWait wait = model::python_wait(*inner);
  return model::is_of_own_threads(wait) || wait == model::PythonWait::kFuture;
}

/// The thread of the process that waits for a lock file: the main one, or one for which that waits.
const model::Thread* lock_waiter(const model::JobModel& job, const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  if (main == nullptr || waits_for_lock_file(job, *main)) {
    return main;
  }
  const auto other = std::find_if(
      process.threads.begin(), process.threads.end(),
      [&job](const model::Thread& thread) { return waits_for_lock_file(job, thread); });
  return waits_for_a_thread(*main) && other != process.threads.end() ? &*other : nullptr;
}

const model::Fact* lock_fact(const model::JobModel& job, const model::Process& process) {
  const std::string pid = std::to_string(process.pid);
  for (const model::Fact* fact : model::facts(job, "lock-file")) {
    const auto waiting = fact->list("waiting_pids");
    if (fact->pid == process.pid ||
        std::find(waiting.begin(), waiting.end(), pid) != waiting.end()) {
      return fact;
    }
  }
  return nullptr;
}

std::optional<std::string> lock_path(const model::Thread& thread, const model::Fact* fact) {
  if (fact != nullptr) {
    if (auto path = fact->text("path")) {
      return path;
    }
  }
  return thread.waits_on ? target_path(*thread.waits_on) : std::nullopt;
}

std::string age_of(const model::Fact& fact) {
  const auto age = fact.number("age_seconds");
  const bool old = fact.flag("older_than_job").value_or(false);
  std::string out = age ? fmt::format(", which is {} old", base::duration(*age)) : std::string();
  if (old) {
    out += age ? ", older than every process of the job"
               : ", which is older than every process of the job";
  }
  const auto pid = fact.number("named_pid");
  if (pid) {
    const auto host = fact.text("named_host");
    const auto lives = fact.flag("named_alive");
    out += fmt::format("; it names process {:.0f}{}{}", *pid,
                       host ? fmt::format(" on {}", *host) : std::string(),
                       lives == false ? ", which has exited" : "");
  }
  return out;
}

/// Created while the job ran, by a process of another machine that may be working under it.
bool may_be_held_elsewhere(const model::Fact& fact) {
  return fact.number("named_pid") && !fact.flag("named_alive") &&
         !fact.flag("older_than_job").value_or(false);
}

/// No process of the job can be working under the lock: every rank polls for it or waits for ranks
/// that do.
bool all_ranks_wait(const graph::Examination& examination) {
  return std::all_of(
      examination.standings.begin(), examination.standings.end(),
      [&examination](const graph::Standing& standing) {
        const bool polls = standing.thread != nullptr && standing.process != nullptr &&
                           waits_for_lock_file(examination.job, *standing.thread);
        return polls || (standing.waits_for_ranks() && !standing.on_cpu && !standing.moved);
      });
}

struct Waiter {
  Suspect suspect;
  std::optional<std::string> path;
  std::optional<HeldPath> held;
};

/// In the words by which a recording keeps a value.
void add_value(const Waiter& waiter, std::vector<Evidence>& evidence) {
  if (waiter.held) {
    evidence.push_back(
        {.rank = waiter.suspect.rank,
         .text = fmt::format("`{}` is '{}'", waiter.held->expression, waiter.held->path)});
  }
}

std::optional<Waiter> waits_for_leftover(const graph::Examination& examination,
                                         const model::Process& process) {
  const model::Thread* const waiting = lock_waiter(examination.job, process);
  const auto still = stuck(examination);
  if (!alive(process) || waiting == nullptr || !still) {
    return std::nullopt;
  }
  const model::Fact* fact = lock_fact(examination.job, process);
  if (fact != nullptr &&
      (fact->flag("held").value_or(false) || !fact->flag("exists").value_or(true))) {
    return std::nullopt;  // a process works under that lock: the wait will end
  }
  auto path = lock_path(*waiting, fact);
  const auto held = path ? std::nullopt : held_path(examination.job, process, *waiting);
  if (held) {
    path = held->path;
  }
  Suspect suspect = suspect_in(examination, process, waiting);
  const model::Frame* asker = lock_asker(*waiting);
  if (asker != nullptr && (!suspect.place.known() || is_lock_library(suspect.place.file))) {
    suspect.place = model::call_site(*asker);
  }
  const bool ownerless =
      fact != nullptr && fact->flag("exists").value_or(false) && fact->flag("held") == false;
  const bool old = fact != nullptr && (fact->flag("older_than_job").value_or(false) ||
                                       fact->flag("named_alive") == false);
  suspect.confidence = ownerless && may_be_held_elsewhere(*fact)          ? Confidence::kPossible
                       : ownerless && old && still == Confidence::kLikely ? Confidence::kCertain
                       : ownerless || old                                 ? *still
                                                                          : Confidence::kPossible;
  // A baton names no owner; and if all ranks wait, none of them works under the lock. Then the wait
  // alone counts as much as a file without an owner.
  if (fact == nullptr && (waits_for_baton(*waiting) || all_ranks_wait(examination))) {
    suspect.confidence = *still;
  }
  suspect.note = fmt::format(
      "{} is waiting here for {} to be removed",
      process.pid == 0 ? std::string("the process") : fmt::format("process {}", process.pid),
      path.value_or("a lock file"));
  suspect.evidence =
      fmt::format("it waits for the lock file {}{}{}{}", path.value_or("(path unknown)"),
                  fact != nullptr ? age_of(*fact) : "", ownerless ? "; no process holds it" : "",
                  asker != nullptr && suspect.place.line != asker->line
                      ? fmt::format("; {}() takes it ({}:{})", asker->function,
                                    base::file_name(asker->file), asker->line)
                      : std::string());
  return Waiter{.suspect = std::move(suspect), .path = path, .held = held};
}

/// "the lock file /a/lock", "2 lock files", "a lock file".
std::string files_said(const std::set<std::string>& paths) {
  if (paths.empty()) {
    return "a lock file";
  }
  return paths.size() == 1 ? "the lock file " + *paths.begin()
                           : fmt::format("{} lock files", paths.size());
}

/// Where the locks of torch's extensions are: "Using /root/.cache/torch_extensions/py311_cu124 as
/// PyTorch extensions root...", as torch/utils/cpp_extension.py prints it.
std::string locks_of_extensions(const model::JobModel& job) {
  constexpr std::string_view kUsing = "Using ";
  constexpr std::string_view kRoot = " as PyTorch extensions root";
  for (const model::Log& log : job.logs) {
    const std::string_view before = std::string_view(log.text).substr(0, log.text.find(kRoot));
    const std::size_t at = before.rfind(kUsing);
    const auto root = before.substr(std::min(at, before.size()));
    if (before.size() < log.text.size() && at != before.npos && !base::contains(root, "\n")) {
      return fmt::format("{}/*/lock", root.substr(kUsing.size()));
    }
  }
  return "~/.cache/torch_extensions/*/*/lock";
}

/// The line in which the file system refuses locks: flock always fails there.
const model::Log* refused_locks(const model::JobModel& job) {
  const auto found = std::find_if(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
    return base::contains(log.text, kNoLocks) && base::contains(log.text, "flock");
  });
  return found == job.logs.end() ? nullptr : &*found;
}

/// The cause is not a file of an earlier run: no process can take the lock.
void tell_refused_locks(const model::Log& log, std::string_view who_waits, Finding& finding) {
  finding.summary = fmt::format("{}; its file system refuses locks", who_waits);
  finding.confidence = std::max(finding.confidence, Confidence::kLikely);
  finding.evidence.push_back({.rank = log.rank, .text = fmt::format("log: OSError: {}", kNoLocks)});
  finding.fix =
      "Move the cache with this lock to a local disk, or mount the shared file system with lock "
      "support (NFS: no `nolock`; Lustre: `-o flock`).";
}

/// torch prints that line, and then either what it builds or, while another process has the lock of
/// the build, nothing.
std::optional<Finding> ends_at_extensions_root(const model::JobModel& job) {
  const auto last = last_line_of_the_log(job);
  if (!last || !job.observations.empty() ||
      last->find(" as PyTorch extensions root") == last->npos) {
    return std::nullopt;
  }
  const bool told = std::any_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
    return base::contains(log.text, "Lock file exists in build directory");
  });
  Finding finding;
  finding.kind = kKind;
  finding.confidence = told ? Confidence::kLikely : Confidence::kPossible;
  finding.summary =
      "the log ends where torch builds a C++ extension; it prints no more while it waits for the "
      "lock of another build";
  finding.fix = fmt::format("If no process builds an extension, delete {} and start again.",
                            locks_of_extensions(job));
  finding.evidence.push_back({.rank = {}, .text = "log: " + *last});
  return finding;
}

Findings detect(const graph::Examination& examination) {
  std::vector<Suspect> suspects;
  std::map<std::string, std::set<std::string>> paths_at;  // by the line of the waiting ranks
  std::map<std::string, std::vector<Evidence>> values_at;
  std::map<std::string, bool> in_batons;
  for (const model::Process* process : processes(examination.job)) {
    if (auto waiter = waits_for_leftover(examination, *process)) {
      add_value(*waiter, values_at[place(waiter->suspect.place)]);
      in_batons[place(waiter->suspect.place)] = waits_for_baton(*waiter->suspect.thread);
      if (waiter->path) {
        paths_at[place(waiter->suspect.place)].insert(*waiter->path);
      }
      suspects.push_back(std::move(waiter->suspect));
    }
  }
  Findings findings = inherited_locks(examination, kKind);
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    const std::string where = place(there.front().place);
    const std::set<std::string>& paths = paths_at[where];
    const bool unsure = finding.confidence == Confidence::kPossible;
    const model::Frame* const asker = lock_asker(*there.front().thread);
    if (asker != nullptr && !graph::same_line(model::call_site(*asker), there.front().place)) {
      finding.locations.push_back(
          location(model::call_site(*asker), finding.culprits, "the lock is taken here"));
    }
    finding.evidence.insert(finding.evidence.end(), values_at[where].begin(),
                            values_at[where].end());
    finding.summary =
        fmt::format("{} {} ({}) for {}, which {}{}", who(there),
                    finding.culprits.size() > 1 ? "wait" : "waits", where, files_said(paths),
                    unsure ? "may be left from an earlier run" : "no process will remove",
                    and_who_waits(finding));
    const model::Log* const refused = refused_locks(examination.job);
    const std::string_view home = home_of_locks(*there.front().thread);
    finding.fix =
        fmt::format("Check that no build is running, then remove {} and start again.",
                    !paths.empty()     ? fmt::format("{}", fmt::join(paths, ", "))
                    : in_batons[where] ? fmt::format("`{}`", locks_of_extensions(examination.job))
                    : home.empty()     ? std::string("the lock file")
                                       : fmt::format("`{}`", home));
    if (paths.empty() && !in_batons[where]) {
      finding.fix +=
          " If it hangs again, move that cache to a local disk: NFS may keep the lock of a process "
          "that has ended.";
    }
    if (refused != nullptr) {
      tell_refused_locks(
          *refused,
          fmt::format("{} {} ({}) for {}", who(there),
                      finding.culprits.size() > 1 ? "wait" : "waits", where, files_said(paths)),
          finding);
    }
    if (paths.size() == 1) {
      finding.details["path"] = *paths.begin();
    } else if (!paths.empty()) {
      finding.details["paths"] = std::vector<std::string>(paths.begin(), paths.end());
    }
    findings.push_back(std::move(finding));
  }
  auto told = findings.empty() ? waits_for_told_locks(examination.job, kKind) : std::nullopt;
  told = told || !findings.empty() ? std::move(told) : ends_at_extensions_root(examination.job);
  if (told) {
    findings.push_back(*std::move(told));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A lock file without an owner",
    .explanation =
        R"(What you see: ranks are in file_baton.wait while a C++ extension "compiles", or they poll a *.lock file; no compiler runs,
and every restart hangs again.

Why: if a lock consists in the existence of a file, only the process that created the file releases it. That process was killed.

flock belongs to the open file, which a fork shares: a child that was forked under the lock keeps it, and closing the file in
the parent does not release it.

The same wait never ends if the file system has no locks: flock fails with "No locks available", and filelock tries again.

How ddpdoctor knows: from the frames of the waiting function and from the file itself: the file exists, no running process holds it,
and it is older than the job. Of flock: the kernel shows the lock in the descriptors of the child alone (/proc/PID/fdinfo).

Fix:
    $ rm ~/.cache/torch_extensions/py311_cpu/my_extension/lock)",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors::stale_file_lock
