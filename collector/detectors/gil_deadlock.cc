// SPDX-License-Identifier: Apache-2.0
// gil-deadlock: a thread sleeps in native code while it holds the GIL; the thread that would wake
// it needs the GIL. No Python thread of the process can run, and the other ranks wait for its rank.
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/gil_holder.h"
#include "collector/detectors/evidence/gil_inversion.h"
#include "collector/detectors/evidence/native_locks.h"
#include "collector/detectors/evidence/own_wait.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/device_waits.h"
#include "collector/model/native_code.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::gil_deadlock {
namespace {

constexpr std::string_view kKind = "gil-deadlock";

/// In a call of MPI or NCCL.
const model::Frame* communication(const model::Thread& thread) {
  const auto found =
      std::find_if(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
        return frame.language == model::Language::kNative &&
               (model::is_mpi_function(frame.function) || frame.function.starts_with("nccl") ||
                frame.function.starts_with("__pyx_pw_6mpi4py"));
      });
  return found == thread.frames.end() ? nullptr : &*found;
}

/// A call of MPI polls while it waits, and does not sleep.
const model::Thread* sleeping_holder(const model::Process& process) {
  if (const model::Thread* only = holder_by_elimination(process)) {
    return only;
  }
  const auto holder = std::find_if(
      process.threads.begin(), process.threads.end(), [&](const model::Thread& thread) {
        return thread.gil.value_or(false) && !waits_for_gil(thread) &&
               (asleep(thread) || callback_behind(process, thread) != nullptr ||
                communication(thread) != nullptr || graph::is_inside_driver(thread.frames));
      });
  return holder == process.threads.end() ? nullptr : &*holder;
}

std::vector<const model::Thread*> threads_without_gil(const model::Process& process) {
  std::vector<const model::Thread*> out;
  for (const model::Thread& thread : process.threads) {
    if (waits_for_gil(thread)) {
      out.push_back(&thread);
    }
  }
  return out;
}

/// According to the kernel or the lock, the holder waits for one of the threads that wait for the
/// GIL.
bool waits_for_one_of(const model::Thread& holder,
                      const std::vector<const model::Thread*>& threads) {
  if (!holder.waits_on) {
    return false;
  }
  const auto target = target_thread(*holder.waits_on);
  return target &&
         std::any_of(threads.begin(), threads.end(),
                     [&target](const model::Thread* thread) { return thread->tid == *target; });
}

/// A thread that waits for the GIL is in a call of MPI or NCCL: others may wait for that call.
bool keeps_a_call(const std::vector<const model::Thread*>& threads) {
  return std::any_of(threads.begin(), threads.end(),
                     [](const model::Thread* thread) { return communication(*thread) != nullptr; });
}

std::string native_call(const model::Thread& thread) {
  if (const model::Frame* call = communication(thread)) {
    return call->function;
  }
  constexpr std::array<std::string_view, 4> kLocks = {"PyThread_acquire_lock", "_PySemaphore",
                                                      "_PyParkingLot", "PyMutex_Lock"};
  for (const model::Frame& frame : thread.frames) {
    if (frame.language != model::Language::kNative) {
      break;
    }
    if (model::says_why(frame) && !frame.function.starts_with("std::") &&
        !base::begins_with_any(frame.function, kLocks)) {
      return function_said(frame);
    }
  }
  for (const model::Frame& frame : thread.frames) {
    if (frame.language == model::Language::kNative && !frame.function.empty()) {
      return frame.function;
    }
  }
  return "native code";
}

/// "thread 77 (capture)".
std::string named(const model::Thread& thread) {
  return thread.name.empty() ? fmt::format("thread {}", thread.tid)
                             : fmt::format("thread {} ({})", thread.tid, thread.name);
}

/// The line of a thread that the holder blocks.
void add_kept_thread(const graph::Examination& examination, const Suspect& holder,
                     Finding& finding) {
  auto threads = threads_without_gil(*holder.process);
  const model::Thread* callback = callback_behind(*holder.process, *holder.thread);
  if (callback != nullptr) {
    threads.insert(threads.begin(), callback);
  }
  for (const model::Thread* kept : threads) {
    const model::CallSite at = suspect_in(examination, *holder.process, kept).place;
    if (at.known()) {
      finding.locations.push_back(
          location(at, holder.rank ? model::RankSet{*holder.rank} : model::RankSet{},
                   fmt::format("{} needs the GIL here{}", named(*kept),
                               kept == callback ? ", in a callback of that library" : "")));
      return;
    }
  }
}

std::optional<Suspect> sleeps_with_gil(const graph::Examination& examination,
                                       const model::Process& process) {
  const model::Thread* holder = sleeping_holder(process);
  if (!alive(process) || holder == nullptr) {
    return std::nullopt;
  }
  const auto others = threads_without_gil(process);
  // A holder that waits for other ranks is blocked by them; its GIL is the cause only if they may
  // wait for a call of this process that needs the GIL.
  const bool for_ranks = graph::standing_of(examination.job, process, *holder).waits_for_ranks() ||
                         graph::is_inside_driver(holder->frames) ||
                         communication(*holder) != nullptr;
  if (others.empty() ||
      (for_ranks && !keeps_a_call(others) && processes(examination.job).size() > 1)) {
    return std::nullopt;
  }
  auto sure = stuck(examination);
  if (waits_for_one_of(*holder, others)) {
    sure = Confidence::kCertain;
  }
  if (!sure) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, process, holder);
  suspect.confidence = *sure;
  const std::string_view waits = asleep(*holder) ? "sleeps" : "waits";
  suspect.note = fmt::format("{} {} here in {} and holds the GIL", named(*holder), waits,
                             native_call(*holder));
  suspect.evidence = fmt::format(
      "{} of process {} holds the GIL and {} in {}; {} thread{} of the process wait{} "
      "for the GIL",
      named(*holder), process.pid, waits, native_call(*holder), others.size(),
      others.size() == 1 ? "" : "s", others.size() == 1 ? "s" : "");
  if (!holder->gil) {
    suspect.evidence += "; each other thread of Python waits for it or has released it";
  }
  if (const model::Thread* callback = callback_behind(process, *holder)) {
    suspect.evidence +=
        fmt::format("; {} needs it in a callback that this library made", named(*callback));
  }
  return suspect;
}

Suspect side_of(const graph::Examination& examination, const model::Process& process,
                const model::Thread& thread, Confidence confidence, std::string note,
                std::string evidence) {
  Suspect suspect = suspect_in(examination, process, &thread);
  suspect.confidence = confidence;
  suspect.note = fmt::format("{} {}", named(thread), note);
  // Code of a library is not a place to blame, but shows who calls.
  const model::Frame* python = suspect.place.known() ? nullptr : model::innermost_python(thread);
  suspect.evidence = fmt::format(
      "{} of process {}{} {}", named(thread), process.pid,
      python == nullptr ? std::string() : placed(model::call_site(*python)), std::move(evidence));
  return suspect;
}

/// Each of two threads has what the other one wants: the GIL, and a native mutex.
std::optional<Finding> inverted(const graph::Examination& examination,
                                const model::Process& process, Confidence sure) {
  const auto found = gil_inversion(process);
  if (!found) {
    return std::nullopt;
  }
  const Confidence confidence = found->told && found->owned ? Confidence::kCertain : sure;
  const std::string taker = function_said(*found->taker);
  const std::string inside =
      found->inside == nullptr ? std::string("a native call") : function_said(*found->inside);
  const std::vector<Suspect> both = {
      side_of(examination, process, *found->holder, confidence,
              fmt::format("waits here for a mutex, in {}", taker),
              fmt::format("waits for a mutex in {}; {}", taker,
                          found->told ? "the dump names it as the holder of the GIL"
                                      : "Python called this code, and no frame shows that it "
                                        "released the GIL")),
      side_of(examination, process, *found->waiter, confidence,
              fmt::format("waits here for the GIL, in {}", inside),
              fmt::format("waits for the GIL inside {}; {}", inside,
                          found->owned ? "the mutex names it as its owner"
                                       : "it probably holds that mutex"))};
  Finding finding = accuse(examination, kKind, both);
  for (const model::Thread* thread : {found->holder, found->waiter}) {
    const model::Frame* python = model::innermost_python(*thread);
    if (python != nullptr && !model::is_user_file(python->file)) {
      finding.locations.insert(
          finding.locations.begin(),
          location(model::call_site(*python), finding.culprits, named(*thread) + " is here"));
    }
  }
  if (finding.locations.empty()) {
    add_functions(*found, finding);
  }
  finding.summary = fmt::format(
      "thread {} of {} {} the GIL and wants {}'s mutex; thread {} {} it in {} and wants the GIL",
      found->holder->tid, process.rank ? who(both) : detectors::named(process.pid, "a process"),
      found->told ? "holds" : "probably holds", taker, found->waiter->tid,
      found->owned ? "holds" : "probably holds", inside);
  finding.fix = fmt::format(
      "Release the GIL around {} (Py_BEGIN_ALLOW_THREADS, pybind11::gil_scoped_release), or do not "
      "take it in {} while the mutex is held. If both are a library's code, update that library.",
      taker, inside);
  return finding;
}

/// The thread that has the GIL waits for a pool whose threads need the GIL.
std::optional<Finding> waits_for_pool(const graph::Examination& examination,
                                      const model::Process& process, Confidence sure) {
  const auto found = pool_behind_gil(process);
  if (!found) {
    return std::nullopt;
  }
  const model::Frame* python = model::innermost_python(*found->holder);
  Suspect holder = side_of(
      examination, process, *found->holder, sure,
      fmt::format("waits here for threads of {}, with the GIL", found->pool),
      found->only
          ? fmt::format("waits for {}'s threads, and no other thread can have the GIL", found->pool)
          : fmt::format("waits for {}'s threads, as every thread does that may have the GIL",
                        found->pool));
  if (!holder.place.known() && python != nullptr) {
    holder.place = model::call_site(*python);
  }
  const auto kept = threads_without_gil(process);
  holder.evidence += fmt::format("; {} thread{} wait{} for the GIL", kept.size(),
                                 kept.size() == 1 ? "" : "s", kept.size() == 1 ? "s" : "");
  Finding finding = accuse(examination, kKind, {holder});
  finding.summary = fmt::format(
      "thread {} of {} {} the GIL and waits for {}'s threads ({}); {} of them wait{} for the GIL",
      found->holder->tid, process.rank ? who({holder}) : detectors::named(process.pid, "a process"),
      found->only ? "holds" : "probably holds", found->pool, place(holder.place), kept.size(),
      kept.size() == 1 ? "s" : "");
  add_kept_thread(examination, holder, finding);
  finding.fix = fmt::format(
      "Update the library that uses {}. Until then, do not let its threads call Python: no Python "
      "function and no Python data source.",
      found->pool);
  return finding;
}

/// The function says more than that it is native code, and the line does not name it already.
bool names_call(const Suspect& suspect) {
  const std::string call = native_call(*suspect.thread);
  return suspect.place.known() && suspect.place.function.find(call) == std::string::npos &&
         !call.starts_with("ffi_") && !call.starts_with("_ctypes");
}

std::string function_at(const model::Frame& frame) {
  const model::CallSite at = model::call_site(frame);
  return at.known() ? line_of(at) : function_said(frame);
}

/// A thread waits for the GIL above its own Python code, and no other thread runs Python.
std::optional<Finding> waits_for_own_gil(const graph::Examination& examination,
                                         const model::Process& process, Confidence sure) {
  const auto found = !process.threads.empty() && lists_native_threads(process) &&
                             !forked_without_exec(examination.job, process)
                         ? own_gil(process)
                         : std::nullopt;
  if (!found) {
    return std::nullopt;
  }
  const std::string asker =
      found->asker == nullptr ? std::string("native code") : function_at(*found->asker);
  const std::string process_name = process.rank ? said(model::RankSet{*process.rank})
                                                : detectors::named(process.pid, "a process");
  Suspect waiter = side_of(examination, process, *found->thread, sure,
                           "waits for the GIL here, called by its own Python code",
                           fmt::format("waits for the GIL in {}, and its outer frames run Python "
                                       "without releasing it",
                                       asker));
  if (found->asker != nullptr && model::call_site(*found->asker).known()) {
    waiter.place = model::call_site(*found->asker);
  }
  std::vector<Suspect> all = {waiter};
  if (found->joiner != nullptr) {
    all.push_back(side_of(examination, process, *found->joiner, sure, "waits here for a thread",
                          "waits for the end of a thread"));
  }
  Finding finding = accuse(examination, kKind, all);
  finding.summary = fmt::format(
      "thread {} of {} waits for the GIL ({}) inside its own Python code; no other thread runs "
      "Python{}",
      found->thread->tid, process_name, asker,
      found->joiner == nullptr
          ? std::string()
          : fmt::format(", and thread {} waits for a thread to end", found->joiner->tid));
  finding.fix =
      "Call pybind11::gil_scoped_acquire or PyGILState_Ensure before this thread calls Python. In "
      "the main thread, release the GIL (PyEval_SaveThread) before it waits.";
  return finding;
}

/// The first cause in which both sides of the wait are known.
std::optional<Finding> wait_of_two_sides(const graph::Examination& examination,
                                         const model::Process& process, Confidence sure) {
  for (auto* const cause : {waits_for_own_gil, waits_for_pool, inverted}) {
    if (auto finding = cause(examination, process, sure)) {
      return finding;
    }
  }
  return std::nullopt;
}

Findings detect(const graph::Examination& examination) {
  const auto sure = stuck(examination);
  std::vector<Suspect> suspects;
  Findings findings;
  for (const model::Process* process : processes(examination.job)) {
    auto finding =
        sure && alive(*process) ? wait_of_two_sides(examination, *process, *sure) : std::nullopt;
    if (finding) {
      findings.push_back(std::move(*finding));
    } else if (auto suspect = sleeps_with_gil(examination, *process)) {
      suspects.push_back(std::move(*suspect));
    }
  }
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    const Suspect& first = there.front();
    finding.summary =
        fmt::format("{} {} blocked in {} ({}) while holding the GIL{}", who(there),
                    finding.culprits.empty() ? "is" : is_or_are(finding.culprits),
                    names_call(first) ? native_call(*first.thread) : "native code",
                    first.place.known() ? place(first.place) : native_call(*first.thread),
                    and_who_waits(finding));
    add_kept_thread(examination, there.front(), finding);
    finding.fix =
        "Release the GIL around the blocking native call (ctypes.CDLL instead of PyDLL, "
        "Py_BEGIN_ALLOW_THREADS, "
        "pybind11::gil_scoped_release); or do not wait in that thread.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A thread sleeps in native code and holds the GIL",
    .explanation =
        R"(What you see: a rank prints nothing, uses 0 % CPU and runs no Python code in any thread; the other ranks wait for it.

Why: an extension (or ctypes.PyDLL, a triton launcher, a logging handler in C) blocks without releasing the GIL. The thread that would
end the wait needs the GIL first.

How ddpdoctor knows: the interpreter names a thread of the process as GIL holder, that thread sleeps in a native call that does not
wait for other ranks, and other threads sleep in take_gil. In a dump with native frames of all threads, the holder is the only
Python thread that is not in take_gil. Or threads of a library's pool (rayon) wait for the GIL, and every thread that may have it waits
for that pool. Or one thread waits for a native mutex below a call from Python, and another one waits for the
GIL inside code of the same class or library: the first has the GIL, the second probably the mutex. Or the holder is in a call of a
library (cudaLaunchHostFunc) whose own thread wants the GIL in a callback. Or a thread waits for the GIL above its own Python code,
and no other thread of the process runs Python.

Fix:
    - library = ctypes.PyDLL("libupload.so")
    + library = ctypes.CDLL("libupload.so")      # in C++: pybind11::gil_scoped_release
)",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::gil_deadlock
