// SPDX-License-Identifier: Apache-2.0
// io-stall: a rank is in a read or open that does not return: a named pipe without a writer, a
// server that never answers, a file system that hangs (state D). The other ranks wait for it in a
// collective.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/file_readers.h"
#include "collector/detectors/evidence/inherited_lock.h"
#include "collector/detectors/evidence/kernel_waits.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/listed_states.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/servers.h"
#include "collector/graph/working.h"
#include "collector/model/progress.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::io_stall {
namespace {

constexpr std::string_view kKind = "io-stall";

constexpr std::string_view kFileLock = "file-lock";
constexpr std::array<std::string_view, 5> kChannels = {"fifo", "socket", "pipe", "file", kFileLock};

/// The input/output that the rank waits for, if no other process of the job can end it.
struct Stall {
  std::string object;  // "the named pipe /data/manifest"
  std::optional<std::string> path;
  bool named = false;   // the kernel named the object
  bool choked = false;  // a program that only the rank could unblock
};

/// It and all its descendants slept between two snapshots.
bool sleeps(const model::JobModel& job, const model::Process& process, int depth = 0) {
  constexpr int kDeepest = 16;
  const model::Observation* before = model::previous(job);
  const model::Thread* main = model::main_thread(process);
  if (before == nullptr || main == nullptr || main->state == 'R' || depth > kDeepest) {
    return false;
  }
  const auto then = std::find_if(before->processes.begin(), before->processes.end(),
                                 [&](const auto& other) { return other.pid == process.pid; });
  if (then == before->processes.end() || model::same_place(*then, process) != true) {
    return false;
  }
  const auto children = children_of(job, process);
  return std::all_of(children.begin(), children.end(), [&](const model::Process* child) {
    return !alive(*child) || sleeps(job, *child, depth + 1);
  });
}

const model::Thread* main_of(const model::Process& process) {
  static const model::Thread kNone;
  const model::Thread* main = model::main_thread(process);
  return main == nullptr ? &kNone : main;
}

bool is_multiprocessing(const model::Process& process) {
  return std::any_of(process.command.begin(), process.command.end(), [](const std::string& word) {
    return word.find("multiprocessing") != std::string::npos;
  });
}

/// A program started by the rank (`subprocess`) that is idle, too: the end of the visible chain.
const model::Process* idle_command(const model::JobModel& job, const model::Process& rank,
                                   const model::WaitsOn& waits) {
  const auto peer = target_pid(waits);
  const model::Process* child = peer ? model::process(job, *peer) : nullptr;
  const model::Thread* main = child == nullptr ? nullptr : model::main_thread(*child);
  // A Python child of multiprocessing belongs to the program: its own stack is more informative.
  const bool own_worker = child != nullptr && innermost_python(*main_of(*child)) != nullptr &&
                          (forked_without_exec(job, *child) || is_multiprocessing(*child));
  const bool foreign = child != nullptr && child->ppid == rank.pid && main != nullptr &&
                       child->role == model::Role::kOther && !own_worker;
  return foreign && alive(*child) && sleeps(job, *child) ? child : nullptr;
}

/// A server, pager or reader that was started beside the ranks and is idle, too: it belongs to no
/// rank, so no process of the job makes it wait.
const model::Process* idle_stranger(const model::JobModel& job, const model::Process& rank,
                                    const model::Thread& thread) {
  const auto peer = target_pid(*thread.waits_on);
  const model::Process* stranger = peer ? model::process(job, *peer) : nullptr;
  const bool idle = stranger != nullptr && stranger->role == model::Role::kOther &&
                    !served_rank(job, *stranger) && !is_multiprocessing(*stranger) &&
                    alive(*stranger) && sleeps(job, *stranger) &&
                    !graph::its_server_works(job, rank, thread);
  return idle ? stranger : nullptr;
}

/// The other end is another process of the job: the rank waits for that process, not for the
/// channel.
bool is_within_job(const model::JobModel& job, const model::Process& rank,
                   const model::WaitsOn& waits) {
  const auto peer = target_pid(waits);
  if (waits.kind == kFileLock || idle_command(job, rank, waits) != nullptr) {
    return false;
  }
  return (peer && *peer != rank.pid && model::process(job, *peer) != nullptr) ||
         waits.target.starts_with("rank:");
}

std::string object_of(const model::WaitsOn& waits, const std::optional<std::string>& path) {
  if (waits.kind == "fifo") {
    return "the named pipe " + path.value_or(waits.detail);
  }
  if (waits.kind == "file") {
    return "the file " + path.value_or(waits.detail);
  }
  if (waits.kind == kFileLock) {
    return "the lock of " + waits.detail;
  }
  constexpr std::string_view kAddress = "address:";
  const std::string other_end =
      waits.target.starts_with(kAddress) ? waits.target.substr(kAddress.size()) : waits.detail;
  constexpr std::string_view kAccepts = "waits for a connection to ";
  if (waits.kind == "socket" && waits.detail.starts_with(kAccepts)) {
    return fmt::format("a socket to which no process connects ({})",
                       waits.detail.substr(kAccepts.size()));
  }
  return fmt::format("a {}{}{}", waits.kind, other_end.empty() ? "" : " to ", other_end);
}

std::string service_of(const model::Process& stranger, const model::WaitsOn& waits) {
  const bool writes = waits.detail.starts_with("writes");
  return fmt::format("{}, which does nothing itself, to {}", with_command(stranger),
                     writes ? "read from a full pipe" : "answer");
}

/// The rank waits for a program that cannot exit: it writes to a full pipe that only the rank could
/// read.
std::optional<Stall> choked_command(const model::JobModel& job, const model::Process& rank,
                                    const model::Thread& thread) {
  const auto peer = thread.waits_on && thread.waits_on->kind == "process"
                        ? target_pid(*thread.waits_on)
                        : std::nullopt;
  const model::Process* child = peer ? model::process(job, *peer) : nullptr;
  const model::Thread* main = child == nullptr ? nullptr : model::main_thread(*child);
  const bool writes_to_us = main != nullptr && main->waits_on && main->waits_on->kind == "pipe" &&
                            target_pid(*main->waits_on) == rank.pid &&
                            main->waits_on->detail.starts_with("writes");
  if (!writes_to_us || child->ppid != rank.pid) {
    return std::nullopt;
  }
  return Stall{.object = fmt::format("the end of process {}, which writes to a full pipe that only "
                                     "this rank could read",
                                     child->pid),
               .path = std::nullopt,
               .named = true,
               .choked = true};
}

/// The wait is part of a cycle over ranks: lock-deadlock reports it.
bool is_in_circle(const graph::Examination& examination, model::Rank rank) {
  const auto& cycles = examination.waits.cycles();
  const std::string node = fmt::format("rank:{}", rank);
  return std::any_of(cycles.begin(), cycles.end(), [&node](const auto& cycle) {
    return std::find(cycle.begin(), cycle.end(), node) != cycle.end() &&
           std::all_of(cycle.begin(), cycle.end(),
                       [](const std::string& one) { return one.starts_with("rank:"); });
  });
}

/// The holder of the lock ran between snapshots: it will release it.
bool holder_goes_on(const model::JobModel& job, const model::WaitsOn& waits) {
  const auto pid = waits.kind == kFileLock ? target_pid(waits) : std::nullopt;
  const model::Process* holder = pid ? model::process(job, *pid) : nullptr;
  const model::Thread* main = holder == nullptr ? nullptr : model::main_thread(*holder);
  return main != nullptr && alive(*holder) &&
         (main->state == 'R' || graph::ran_between_looks(job, *holder, *main));
}

std::optional<Stall> channel_stall(const model::JobModel& job, const model::Process& rank,
                                   const model::Thread& thread) {
  if (!thread.waits_on ||
      std::find(kChannels.begin(), kChannels.end(), thread.waits_on->kind) == kChannels.end() ||
      holder_goes_on(job, *thread.waits_on) || waits_for_inherited_lock(job, rank, thread)) {
    return std::nullopt;
  }
  const model::Process* stranger = idle_stranger(job, rank, thread);
  if (stranger == nullptr && is_within_job(job, rank, *thread.waits_on)) {
    return std::nullopt;
  }
  if (graph::ran_between_looks(job, rank, thread)) {  // something arrived, although slowly
    return std::nullopt;
  }
  const auto path = target_path(*thread.waits_on);
  return Stall{.object = stranger == nullptr ? object_of(*thread.waits_on, path)
                                             : service_of(*stranger, *thread.waits_on),
               .path = stranger == nullptr ? path : std::nullopt,
               .named = true};
}

/// In uninterruptible sleep in both observations: a disk that answers leaves that state within
/// milliseconds.
std::optional<Stall> device_stall(const model::JobModel& job, const model::Process& rank,
                                  const model::Thread& thread) {
  const model::Observation* before = model::previous(job);
  if (thread.state != 'D' || before == nullptr || graph::ran_between_looks(job, rank, thread)) {
    return std::nullopt;
  }
  for (const model::Process& process : before->processes) {
    const model::Thread* then = process.pid == rank.pid ? model::main_thread(process) : nullptr;
    if (then != nullptr && then->state == 'D' && then->wchan == thread.wchan) {
      return Stall{.object = thread.wchan.empty()
                                 ? "a device or file system"
                                 : "a device or file system, in the kernel's " + thread.wchan,
                   .path = std::nullopt,
                   .named = !thread.wchan.empty()};
    }
  }
  return std::nullopt;
}

/// Waits that look like input/output but have another explanation.
bool waits_for_something_else(const model::JobModel& job, const graph::Standing& standing,
                              const model::Thread& main) {
  using enum graph::Activity;
  const bool names_it = main.waits_on && (main.waits_on->kind == kFileLock ||
                                          idle_command(job, *standing.process, *main.waits_on));
  if (names_it && (standing.activity == kLock || standing.activity == kJoin)) {
    return false;
  }
  constexpr std::array kOthers = {kDataLoader, kQueue,   kJoin, kStore, kRendezvous,
                                  kInput,      kStopped, kExit, kLock,  kImport};
  return standing.waits_for_ranks() ||
         std::find(kOthers.begin(), kOthers.end(), standing.activity) != kOthers.end();
}

std::optional<Suspect> stalled(const graph::Examination& examination,
                               const graph::Standing& standing, Confidence still, Stall& found) {
  const bool lives = standing.process != nullptr && alive(*standing.process);
  const model::Thread* main = lives ? model::main_thread(*standing.process) : nullptr;
  if (main == nullptr || standing.on_cpu || is_in_circle(examination, standing.rank)) {
    return std::nullopt;
  }
  auto stall = choked_command(examination.job, *standing.process, *main);
  if (!stall && (waits_for_something_else(examination.job, standing, *main) ||
                 python_frame_in(*main, "torch/distributed/distributed_c10d.py") != nullptr)) {
    return std::nullopt;
  }
  stall = stall ? stall : channel_stall(examination.job, *standing.process, *main);
  stall = stall ? stall : device_stall(examination.job, *standing.process, *main);
  if (!stall) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, *standing.process, main);
  // The kernel names the object and the stack the user's line: two facts, if nothing makes
  // progress.
  const bool both = stall->named && suspect.place.known() && still == Confidence::kLikely;
  suspect.confidence = both && !waiting_ranks(examination).empty() ? Confidence::kCertain : still;
  const bool may_be_served = main->waits_on && main->waits_on->kind != kFileLock && !stall->choked;
  if (may_be_served) {
    suspect.confidence = unless_somebody_acts(examination, suspect.confidence);
  }
  suspect.note = fmt::format("rank {} waits here for {}", standing.rank, stall->object);
  suspect.evidence = fmt::format("rank {} (process {}) is blocked on {}", standing.rank,
                                 standing.process->pid, stall->object);
  found = *stall;
  return suspect;
}

/// In the kernel's client of a network file system.
bool waits_in_network_files(const std::vector<Suspect>& there) {
  constexpr std::array<std::string_view, 7> kClients = {"nfs",    "rpc_wait", "nlmclnt", "ceph",
                                                        "lustre", "cl_sync",  "fuse_"};
  return std::any_of(there.begin(), there.end(), [&](const Suspect& suspect) {
    return suspect.thread != nullptr && suspect.thread->state == 'D' &&
           std::any_of(kClients.begin(), kClients.end(), [&](std::string_view client) {
             return suspect.thread->wchan.find(client) != std::string::npos;
           });
  });
}

std::string fix_for(const Stall& stall, const std::vector<Suspect>& there) {
  if (stall.choked) {
    return "Read the output while the program runs: use run(capture_output=True), communicate() or "
           "a file. wait() with a pipe blocks when the pipe is full.";
  }
  if (!stall.path && waits_in_network_files(there)) {
    return "Check the file server of that path (NFS), or write to local storage. Write what all "
           "ranks share on rank 0 only.";
  }
  if (!stall.path) {
    return "Set a timeout on this wait, or open it non-blocking, so that it raises when no answer "
           "arrives.";
  }
  const bool in_kernel = std::any_of(there.begin(), there.end(), [](const Suspect& suspect) {
    return suspect.thread != nullptr && suspect.thread->state == 'D';
  });
  return in_kernel ? fmt::format(
                         "Check the server and the mount of {}: its file system does not answer. "
                         "`kill -9` has no effect until it answers.",
                         *stall.path)
                   : fmt::format(
                         "Start the process that serves {}, or set a timeout on this wait so that "
                         "it raises.",
                         *stall.path);
}

Findings detect(const graph::Examination& examination) {
  const auto still = stuck(examination);
  std::vector<Suspect> suspects;
  std::map<std::string, Stall> stalls;  // by line
  for (const graph::Standing& standing : examination.standings) {
    Stall found;
    if (auto suspect = still ? stalled(examination, standing, *still, found) : std::nullopt) {
      stalls.emplace(place(suspect->place), std::move(found));
      suspects.push_back(std::move(*suspect));
    }
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    const std::string where = place(there.front().place);
    finding.summary = fmt::format("{} {} blocked in input/output ({}){}", who(there),
                                  is_or_are(finding.culprits), where, and_who_waits(finding));
    const Stall& stall = stalls.at(where);
    if (stall.path) {
      finding.details["path"] = *stall.path;
    }
    finding.fix = fix_for(stall, there);
    findings.push_back(std::move(finding));
  }
  if (findings.empty()) {
    findings = findings_of_kernel_waits(examination, kKind, KernelPart::kFiles);
  }
  if (findings.empty()) {
    findings = listed_sleepers(examination, kKind);
  }
  if (findings.empty()) {
    findings = findings_of_file_readers(examination, kKind);
  }
  if (findings.empty()) {
    findings = without_culprits(findings_from_text(examination, kKind));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A rank is blocked in input or output",
    .explanation =
        R"(What you see: one rank is in open(), read() or recv(); the others wait for it in a collective. State D and a wchan of nfs_…
or rpc_… mean a network file system.

Why: a named pipe has no writer, a server does not answer, or the server of a mount is unavailable. Without a timeout the call never
returns.

How ddpdoctor knows: from the system call that the rank sleeps in and the object behind its descriptor, or from state D in two
snapshots; in texts, from /proc/PID/stack with functions of a file system (likely if the same stack was printed twice), from
a table of processes in which one of several ranks is in state D, or from
several threads of a process in read() of files at one line while its main thread waits for them. Pipes and sockets to other processes of the job do not count, because the other process is then the cause.

Fix:
    - data = connection.recv(100)
    + connection.settimeout(60)
    + data = connection.recv(100))",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors::io_stall
