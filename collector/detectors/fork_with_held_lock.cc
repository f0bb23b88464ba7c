// SPDX-License-Identifier: Apache-2.0
// fork-with-held-lock: a process forked while another of its threads held a lock (of a logging
// handler, an allocator, or the user). The child inherits the locked lock without the thread that
// would release it, and waits forever.
#include <algorithm>

#include <fmt/format.h>

#include "base/path_ends.h"
#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/fork_handler.h"
#include "collector/detectors/evidence/lock_names.h"
#include "collector/detectors/evidence/native_locks.h"
#include "collector/detectors/evidence/own_wait.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/python_waits.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::fork_with_held_lock {
namespace {

constexpr std::string_view kKind = "fork-with-held-lock";
constexpr std::string_view kLostThread = "asked a thread that it does not have";
constexpr std::string_view kForkWaits = "waits in fork";

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

/// The dump lists every thread of the process, and there is only one.
bool is_known_alone(const model::Process& process) {
  return process.threads.size() == 1 && model::was_dumped(process) && lists_native_threads(process);
}

/// Whole stacks of another tool show a worker of DataLoader, which multiprocessing forks unless the
/// program says otherwise.
bool is_dumped_worker(const model::Process& process) {
  return process.role == model::Role::kDataLoaderWorker && model::was_dumped(process);
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
    const model::PythonWait wait = model::python_wait(frame);
    if (!model::is_of_threading(wait) && wait != model::PythonWait::kFuture) {
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
      base::path_contains(file, base::kMultiprocessing) ||
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

/// A handler of a signal may set an Event; a Future is completed by a thread or an event loop.
bool alone_with_a_future(const model::Process& process) {
  const auto& frames = process.threads.front().frames;
  return process.threads.size() == 1 &&
         std::any_of(frames.begin(), frames.end(), [](const model::Frame& frame) {
           return model::python_wait(frame) == model::PythonWait::kFuture;
         });
}

/// It waits for a thread that the fork did not copy.
std::optional<Suspect> waits_for_lost_thread(const graph::Examination& examination,
                                             const model::Process& process) {
  const auto sure = stuck(examination);
  if (!alive(process) || !forked_without_exec(examination.job, process) || !sure) {
    return std::nullopt;
  }
  for (const model::Thread& thread : process.threads) {
    const model::Frame* asks = asks_a_thread(thread);
    const model::Thread* lost =
        asks == nullptr ? nullptr : left_in_parent(examination.job, process, thread, asks->file);
    if (lost == nullptr && (asks == nullptr || !alone_with_a_future(process))) {
      continue;
    }
    Suspect suspect = suspect_in(examination, process, &thread);
    suspect.confidence = std::min(*sure, Confidence::kLikely);
    suspect.note = fmt::format("process {}, forked by {}, waits here for a thread", process.pid,
                               named(process.ppid, "its parent"));
    suspect.evidence = fmt::format(
        "process {} waits in {} ({}:{}) for another thread of its own; {}", process.pid,
        asks->function, base::file_name(asks->file), asks->line,
        lost == nullptr ? "it was forked and has one thread only"
                        : fmt::format("{} of process {} runs that file, and fork did not copy it",
                                      thread_name(*lost), process.ppid));
    suspect.deed = kLostThread;
    return suspect;
  }
  return std::nullopt;
}

/// Its only thread waits in native code for a signal of another thread.
std::optional<Suspect> waits_for_lost_signal(const graph::Examination& examination,
                                             const model::Process& process) {
  const auto wait = alive(process) && forked_without_exec(examination.job, process)
                        ? waits_alone(process)
                        : std::nullopt;
  const auto sure = stuck(examination);
  if (!wait || wait->kind != OwnWaitKind::kSignal || !lists_native_threads(process) ||
      is_exiting(process.threads.front()) || !sure) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, process, process.threads.data());
  suspect.confidence = std::min(*sure, Confidence::kLikely);
  suspect.note = fmt::format("process {}, forked by {}, waits here for a thread", process.pid,
                             named(process.ppid, "its parent"));
  suspect.evidence = fmt::format(
      "process {} was forked from {}, has one thread only and waits in {} for a signal of another "
      "thread",
      process.pid, named(process.ppid, "its parent"), function_said(*wait->asker));
  suspect.deed = kLostThread;
  return suspect;
}

std::optional<Suspect> waits_for_lost_owner(const graph::Examination& examination,
                                            const model::Process& process) {
  const bool forked = forked_without_exec(examination.job, process);
  const bool child = forked || is_dumped_worker(process);
  if (!alive(process) || (!child && !is_known_alone(process))) {
    return std::nullopt;
  }
  for (const model::Thread& thread : process.threads) {
    const auto owner = foreign_owner(process, thread);
    const model::WaitsOn* mutex = waits_on(thread, "mutex");
    const bool owner_unknown = mutex == nullptr || !target_thread(*mutex);
    const auto wait = waits_alone(process);
    const bool native = mutex_taker(thread).has_value();
    const bool alone = process.threads.size() == 1 && child && owner_unknown &&
                       (!native || forked || lists_native_threads(process)) &&
                       (waits_for_private_lock(examination.job, thread) || native ||
                        (wait && wait->kind == OwnWaitKind::kLock));
    if (!owner && !alone) {
      continue;
    }
    Suspect suspect = suspect_in(examination, process, &thread);
    const std::string parent = named(process.ppid, "its parent");
    const bool complete = owner || lists_native_threads(process) ||
                          model::innermost_python(thread) == thread.frames.data();
    suspect.confidence = forked && complete ? Confidence::kCertain
                         : child            ? Confidence::kLikely
                                            : Confidence::kPossible;
    suspect.note = fmt::format("process {}, forked by {}, waits here for {}", process.pid, parent,
                               lock_name(examination.job, thread));
    suspect.evidence =
        owner ? fmt::format(
                    "{}the lock it waits for is held by thread {}, which process {} "
                    "does not have",
                    child ? fmt::format("process {} was forked from {}; ", process.pid, parent)
                          : std::string(),
                    *owner, process.pid)
              : fmt::format(
                    "process {} was forked from {}, has one thread only and "
                    "waits for {}: no thread can "
                    "release it",
                    process.pid, parent, lock_name(examination.job, thread));
    return suspect;
  }
  return std::nullopt;
}

/// Its fork does not return.
std::optional<Suspect> waits_in_fork(const graph::Examination& examination,
                                     const model::Process& process) {
  const auto still = stuck(examination);
  for (const model::Thread& thread : process.threads) {
    const auto found = handler_of_fork(thread);
    if (!found || !still || !alive(process)) {
      continue;
    }
    Suspect suspect = suspect_in(examination, process, &thread);
    suspect.confidence = *still;
    suspect.note = fmt::format("{} is in fork here", full_thread_name(thread));
    suspect.evidence = fmt::format(
        "{}{} is in fork, which called the handler {} of {}; the handler waits in {}",
        full_thread_name(thread), process.pid > 0 ? fmt::format(" of process {}", process.pid) : "",
        function_said(*found->handler),
        found->handler->module.empty() ? "a library" : found->handler->module,
        function_said(*found->wait));
    suspect.deed = kForkWaits;
    return suspect;
  }
  return std::nullopt;
}

/// The only thread of a process waits for a mutex of its own: it was forked, although nothing shows
/// from which process.
std::optional<Finding> mutex_of_lone_thread(const graph::Examination& examination,
                                            const model::Process& process) {
  const auto wait =
      alive(process) && !forked_without_exec(examination.job, process) && !is_dumped_worker(process)
          ? waits_alone(process)
          : std::nullopt;
  if (!wait || wait->kind != OwnWaitKind::kLock || wait->asker == nullptr || !stuck(examination) ||
      !lists_native_threads(process) || !is_private_futex(process.threads.front()) ||
      is_exiting(process.threads.front())) {
    return std::nullopt;
  }
  const model::Frame* telling = model::telling_frame(process.threads.front());
  const std::string function = function_said(telling == nullptr ? *wait->asker : *telling);
  Suspect suspect = suspect_in(examination, process, process.threads.data());
  suspect.confidence = Confidence::kPossible;
  suspect.note = "the only thread of the process waits here for a mutex";
  suspect.evidence =
      fmt::format("the mutex that {} takes is of process {} alone, which has no other thread",
                  function, process.pid);
  Finding finding = accuse(examination, kKind, {suspect});
  finding.summary =
      fmt::format("the only thread of {} waits for a mutex in {}: probably it was held at a fork",
                  named(process.pid, "a process"), function);
  finding.fix =
      "Start the child with the spawn or forkserver method, or fork before that library starts its "
      "threads.";
  return finding;
}

Finding fork_that_waits(const graph::Examination& examination, const std::vector<Suspect>& there) {
  const auto found = handler_of_fork(*there.front().thread);
  Finding finding = accuse(examination, kKind, there);
  const std::string handler = function_said(*found->handler);
  const bool ranked = there.front().rank.has_value();
  finding.summary = fmt::format(
      "{} does not get through fork ({}): the handler {} waits for threads of its library{}",
      ranked ? who(there) : named(there.front().process->pid, "a process"),
      there.front().place.known() ? place(there.front().place) : "line unknown", handler,
      and_who_waits(finding));
  finding.fix =
      handler.find("grpc") != std::string::npos
          ? "Set GRPC_ENABLE_FORK_SUPPORT=0, update grpcio, or start child processes before the "
            "first call of gRPC."
          : fmt::format(
                "Start child processes before the first call of {}. Or choose a different "
                "threading layer of that library, or update it.",
                found->handler->module.empty() ? handler : found->handler->module);
  return finding;
}

/// The user's line of the wait, else the function that takes the lock, else a library's line.
std::string where(const Suspect& suspect) {
  if (suspect.place.known() || suspect.thread == nullptr) {
    return place(suspect.place);
  }
  const model::Thread& thread = *suspect.thread;
  const std::string taker = lock_taker(thread);
  const model::Frame* python = asking_line(thread);
  const bool says_little = taker.empty() || taker.starts_with(kTakerOfBuffer);
  if ((says_little || thread.frames.front().language == model::Language::kPython) &&
      python != nullptr) {
    return place(model::call_site(*python));
  }
  const model::Frame* function = taker == "the GIL" ? asking_function(thread) : nullptr;
  return function != nullptr ? function_said(*function)
         : taker.empty()     ? place(suspect.place)
                             : taker;
}

/// "rank 1"; without a known rank, "process 7", and never the child itself.
std::string parent_said(const model::JobModel& job, const std::vector<Suspect>& there) {
  const model::Process* child = there.front().process;
  const bool unknown = !there.front().rank && child != nullptr && !served_rank(job, *child);
  const bool itself = child != nullptr && child->role == model::Role::kRank;
  return unknown || itself ? named(child->ppid, "its parent") : who(there);
}

/// "process 7, forked by rank 1,".
std::string child_said(const model::JobModel& job, const std::vector<Suspect>& there) {
  return fmt::format(
      "{}, forked by {},",
      there.size() == 1 ? named(there.front().process->pid, "a child process") : "a child process",
      parent_said(job, there));
}

Findings detect(const graph::Examination& examination) {
  std::vector<Suspect> suspects;
  for (const model::Process* process : processes(examination.job)) {
    auto suspect = waits_for_lost_owner(examination, *process);
    suspect = suspect ? std::move(suspect) : waits_for_lost_thread(examination, *process);
    suspect = suspect ? std::move(suspect) : waits_for_lost_signal(examination, *process);
    suspect = suspect ? std::move(suspect) : waits_in_fork(examination, *process);
    if (suspect) {
      suspects.push_back(std::move(*suspect));
    }
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    if (there.front().deed == kForkWaits) {
      findings.push_back(fork_that_waits(examination, there));
      continue;
    }
    Finding finding = accuse(examination, kKind, there);
    if (there.front().deed == kLostThread) {
      finding.summary = fmt::format("{} waits ({}) for a thread that exists only in the parent{}",
                                    child_said(examination.job, there), where(there.front()),
                                    and_who_waits(finding));
      finding.fix =
          "Start the child with the spawn or forkserver method, or fork before the library starts "
          "its thread; drop what the child inherits from it.";
      findings.push_back(std::move(finding));
      continue;
    }
    const std::string at = where(there.front());
    const std::string lock = lock_name(examination.job, *there.front().thread);
    finding.summary =
        fmt::format("{} waits ({}) for {} that was held when it was forked{}",
                    child_said(examination.job, there), at,
                    lock.find(at) == lock.npos ? lock : "a lock", and_who_waits(finding));
    finding.fix =
        "Fork before threads are started that take this lock, or start the child with the spawn or "
        "forkserver method.";
    findings.push_back(std::move(finding));
  }
  for (const model::Process* process : processes(examination.job)) {
    if (auto finding =
            findings.empty() ? mutex_of_lone_thread(examination, *process) : std::nullopt) {
      findings.push_back(std::move(*finding));
    }
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
process, or the only thread of the process waits for a lock of that process: of Python, of libc, of a library or of a buffered file
such as stdout. Or it waits for a signal of another thread that it does not have. Or fork itself does not return: a function that a
library registered with pthread_atfork waits for the library's threads. Or it waits in code of a file that only a thread of
its parent runs: fork copied only the thread that forked.

Fix:
    + start the children first
      start the threads (pin_memory, metrics, logging queues)
or multiprocessing.get_context("spawn").)",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::fork_with_held_lock
