// SPDX-License-Identifier: Apache-2.0
// fork-with-held-lock: a process forked while another of its threads held a lock (of a logging
// handler, an allocator, or the user). The child inherits the locked lock without the thread that
// would release it, and waits forever.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/native_locks.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::fork_with_held_lock {
namespace {

constexpr std::string_view kKind = "fork-with-held-lock";
constexpr std::string_view kLostThread = "asked a thread that it does not have";

bool has_thread(const model::Process& process, pid_t tid) {
  return std::any_of(process.threads.begin(), process.threads.end(),
                     [tid](const model::Thread& thread) { return thread.tid == tid; });
}

/// The owner thread that the lock itself names, if this process has no such thread.
std::optional<pid_t> foreign_owner(const model::Process& process, const model::Thread& thread) {
  const model::WaitsOn* mutex = waits_on(thread, "mutex");
  if (mutex == nullptr) {
    return std::nullopt;
  }
  const auto owner = target_thread(*mutex);
  return owner && !has_thread(process, *owner) ? owner : std::nullopt;
}

/// The function that takes the lock: "__internal_atexit"; empty if no native frame shows it.
std::string lock_taker(const model::Thread& thread) {
  if (const auto taker = mutex_taker(thread)) {
    return function_said(thread.frames[*taker]);
  }
  for (const model::Frame& frame : thread.frames) {
    const std::string_view name = frame.function;
    if (frame.language != model::Language::kNative) {
      break;
    }
    if (!name.empty() && name.find("lll_lock") == name.npos &&
        name.find("mutex_lock") == name.npos && name.find("futex") == name.npos) {
      return frame.function;
    }
  }
  return {};
}

/// Whole stacks of another tool show a worker of DataLoader, which multiprocessing forks unless the
/// program says otherwise.
bool is_dumped_worker(const model::Process& process) {
  return process.role == model::Role::kDataLoaderWorker && model::was_dumped(process);
}

std::string lock_name(const model::JobModel& job, const model::Thread& thread) {
  if (const auto wanted = wanted_locks(job, thread); wanted.size() == 1) {
    return "the lock " + wanted[0];
  }
  if (python_frame_in(thread, "logging/__init__.py") != nullptr) {
    return "the lock of a logging handler";
  }
  if (const std::string taker = lock_taker(thread); !taker.empty()) {
    return "the lock in " + taker;
  }
  return "a lock";
}

/// The frame that waits inside this process for something that only another of its threads can end:
/// the caller of Condition.wait, Event.wait or Future.result without a timeout.
const model::Frame* asks_a_thread(const model::Thread& thread) {
  if (!asleep(thread) || (thread.waits_on && thread.waits_on->limit)) {
    return nullptr;
  }
  const model::Frame* inner = nullptr;
  for (const model::Frame& frame : thread.frames) {
    if (frame.language != model::Language::kPython) {
      continue;
    }
    const bool waits = frame.file.ends_with("/threading.py") ||
                       frame.file.ends_with("concurrent/futures/_base.py");
    if (!waits) {
      return inner == nullptr ? nullptr : &frame;
    }
    inner = &frame;
  }
  return nullptr;
}

bool runs_code_of(const model::Thread& thread, std::string_view file) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [file](const auto& frame) {
    return frame.language == model::Language::kPython && frame.file == file;
  });
}

/// The thread of the parent that runs the code of `file`, if no other thread of the child does.
const model::Thread* left_in_parent(const model::JobModel& job, const model::Process& process,
                                    const model::Thread& waiting, std::string_view file) {
  const model::Process* parent = model::process(job, process.ppid);
  if (parent == nullptr || file.ends_with("/queue.py") ||
      file.find("multiprocessing/") != std::string_view::npos ||
      std::any_of(process.threads.begin(), process.threads.end(), [&](const auto& thread) {
        return thread.tid != waiting.tid && runs_code_of(thread, file);
      })) {
    return nullptr;
  }
  const model::Thread* main = model::main_thread(*parent);
  for (const model::Thread& thread : parent->threads) {
    if (&thread != main && runs_code_of(thread, file)) {
      return &thread;
    }
  }
  return nullptr;
}

/// It waits for a thread that the fork did not copy.
std::optional<Suspect> waits_for_lost_thread(const graph::Examination& examination,
                                             const model::Process& process) {
  if (!alive(process) || !forked_without_exec(examination.job, process) || !examination.still()) {
    return std::nullopt;
  }
  for (const model::Thread& thread : process.threads) {
    const model::Frame* asks = asks_a_thread(thread);
    const model::Thread* lost =
        asks == nullptr ? nullptr : left_in_parent(examination.job, process, thread, asks->file);
    if (lost == nullptr) {
      continue;
    }
    Suspect suspect = suspect_in(examination, process, &thread);
    suspect.confidence = Confidence::kLikely;
    suspect.note = fmt::format("process {}, forked by process {}, waits here for a thread",
                               process.pid, process.ppid);
    suspect.evidence = fmt::format(
        "process {} waits in {} ({}:{}) for another thread of its own; {} of process {} runs that "
        "file, and fork did not copy it",
        process.pid, asks->function, base::file_name(asks->file), asks->line, thread_name(*lost),
        process.ppid);
    suspect.deed = kLostThread;
    return suspect;
  }
  return std::nullopt;
}

std::optional<Suspect> waits_for_lost_owner(const graph::Examination& examination,
                                            const model::Process& process) {
  const bool forked = forked_without_exec(examination.job, process);
  if (!alive(process) || (!forked && !is_dumped_worker(process))) {
    return std::nullopt;
  }
  for (const model::Thread& thread : process.threads) {
    const auto owner = foreign_owner(process, thread);
    const model::WaitsOn* mutex = waits_on(thread, "mutex");
    const bool owner_unknown = mutex == nullptr || !target_thread(*mutex);
    const bool alone = process.threads.size() == 1 && owner_unknown &&
                       (waits_for_private_lock(examination.job, thread) || mutex_taker(thread));
    if (!owner && !alone) {
      continue;
    }
    Suspect suspect = suspect_in(examination, process, &thread);
    const std::string parent = named(process.ppid, "its parent");
    suspect.confidence = forked ? Confidence::kCertain : Confidence::kLikely;
    suspect.note = fmt::format("process {}, forked by {}, waits here for {}", process.pid, parent,
                               lock_name(examination.job, thread));
    suspect.evidence = owner ? fmt::format(
                                   "process {} was forked from {}; the lock it waits for "
                                   "is held by thread {}, which "
                                   "process {} does not have",
                                   process.pid, parent, *owner, process.pid)
                             : fmt::format(
                                   "process {} was forked from {}, has one thread only and "
                                   "waits for {}: no thread can "
                                   "release it",
                                   process.pid, parent, lock_name(examination.job, thread));
    return suspect;
  }
  return std::nullopt;
}

/// The line of the wait, else the function that takes the lock.
std::string where(const Suspect& suspect) {
  const std::string taker = suspect.thread == nullptr ? std::string() : lock_taker(*suspect.thread);
  return suspect.place.known() || taker.empty() ? place(suspect.place) : taker;
}

/// "rank 1"; without a known rank, "process 7", and never the child itself.
std::string parent_said(const model::JobModel& job, const std::vector<Suspect>& there) {
  const model::Process* child = there.front().process;
  const bool unknown = !there.front().rank && child != nullptr && !served_rank(job, *child);
  return unknown ? named(child->ppid, "a rank") : who(there);
}

Findings detect(const graph::Examination& examination) {
  std::vector<Suspect> suspects;
  for (const model::Process* process : processes(examination.job)) {
    auto suspect = waits_for_lost_owner(examination, *process);
    suspect = suspect ? std::move(suspect) : waits_for_lost_thread(examination, *process);
    if (suspect) {
      suspects.push_back(std::move(*suspect));
    }
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    if (there.front().deed == kLostThread) {
      finding.summary = fmt::format(
          "a child process forked by {} waits ({}) for a thread that exists only in the parent{}",
          who(there), place(there.front().place), and_who_waits(finding));
      finding.fix =
          "Start the child with the spawn or forkserver method, or fork before the library starts "
          "its thread; drop what the child inherits from it.";
      findings.push_back(std::move(finding));
      continue;
    }
    finding.summary = fmt::format(
        "a child process forked by {} waits ({}) for a lock that was held when it was forked{}",
        parent_said(examination.job, there), where(there.front()), and_who_waits(finding));
    finding.fix =
        "Fork before threads are started that take this lock, or start the child with the spawn or "
        "forkserver method.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A forked child waits for a lock whose owner is not in it",
    .explanation =
        R"(What you see: now and then a child (DataLoader worker, multiprocessing.Process) never starts its work; it waits for a lock,
often in logging, in an allocator or in a library's clean-up. Its rank waits for it, the other ranks for that rank.

Why: fork copies every lock with its state, but only the thread that forks. A lock that another thread held at that moment stays
locked in the child forever.

How ddpdoctor knows: the process was started by fork without exec, and either the lock names an owner that is not a thread of the
process, or the only thread of the process waits for a lock of that process. Or it waits in code of a file that only a thread of its
parent runs: fork copied only the thread that forked.

Fix:
    + start the children first
      start the threads (pin_memory, metrics, logging queues)
or multiprocessing.get_context("spawn").)",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::fork_with_held_lock
