// SPDX-License-Identifier: Apache-2.0
// A library does not call itself again by an allocation: only a hook around malloc or madvise, a
// signal handler, the garbage collector, an exit handler or a callback brings a thread back into
// it.
#include "collector/detectors/evidence/native_deadlocks.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/evidence/native_locks.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using model::Frame;
using model::Thread;

constexpr std::string_view kKind = "lock-deadlock";

/// A thread that waits for a mutex in `taker`, and was inside `outer`, of the same library, when
/// `through` called it back.
struct Reentry {
  const Frame* taker = nullptr;
  const Frame* through = nullptr;
  const Frame* outer = nullptr;
  bool owned = false;  // the mutex names the thread itself
};

bool is_named_in(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Of an allocator: any library calls it, and may be called by a hook in it.
bool allocates(std::string_view name) {
  constexpr std::array<std::string_view, 16> kNames = {
      "malloc",        "calloc",       "realloc",         "free",     "posix_memalign", "memalign",
      "aligned_alloc", "operator new", "operator delete", "madvise",  "mmap",           "munmap",
      "__libc_malloc", "__libc_free",  "_int_malloc",     "_int_free"};
  return is_named_in(name, kNames) || name.starts_with("mi_malloc") ||
         name.starts_with("mi_free") || name.starts_with("_mi_malloc") || name.starts_with("je_") ||
         name.starts_with("tc_") || name.starts_with("_intercept_") ||
         name.starts_with("__GI___libc_malloc") || name.starts_with("__GI___libc_free");
}

/// "<signal handler called>" of gdb, and the function to which a handler returns.
bool is_signal(std::string_view function) {
  return function == "<signal handler called>" || function == "__restore_rt" ||
         function == "_sigtramp";
}

/// A function that the library was given, or Python code.
bool is_callback(const Frame& frame) {
  return frame.function.starts_with("std::_Function_handler<") ||
         plain_function(frame.function) == "_PyEval_EvalFrameDefault";
}

/// The last reference to an object ended, which is code of another place.
bool is_destructor(const Frame& frame) {
  return frame.function.find("::~") != std::string::npos;
}

bool calls_back(const Frame& frame) {
  constexpr std::array<std::string_view, 14> kNames = {"collect",
                                                       "gc_collect_main",
                                                       "collect_with_callback",
                                                       "collect_generations",
                                                       "delete_garbage",
                                                       "_PyObject_GC_Alloc",
                                                       "gc_collect_generations",
                                                       "_Py_RunGC",
                                                       "_PyGC_Collect",
                                                       "__run_exit_handlers",
                                                       "_dl_fini",
                                                       "__cxa_finalize",
                                                       "atexit_callfuncs",
                                                       "call_ll_exitfuncs"};
  const std::string name = plain_function(frame.function);
  return frame.language == model::Language::kNative &&
         (is_signal(frame.function) || allocates(name) || is_callback(frame) ||
          is_destructor(frame) || is_named_in(name, kNames));
}

/// Frames of malloc have one lock (or one for each arena), whatever their names.
bool has_lock_of(const Frame& taker, const Frame& outer) {
  return is_same_code(taker, outer) ||
         (allocates(plain_function(taker.function)) && allocates(plain_function(outer.function)) &&
          taker.module == outer.module);
}

/// The mutex may be taken twice by one thread.
bool is_recursive(const Thread& thread, std::size_t taker) {
  const auto recursive = [](const Frame& frame) {
    return frame.function.find("recursive") != std::string::npos ||
           frame.function.find("RLock") != std::string::npos;
  };
  const auto end = thread.frames.begin() + static_cast<std::ptrdiff_t>(taker) + 1;
  return std::any_of(thread.frames.begin(), end, recursive);
}

/// The threads of a process with different stacks.
std::vector<const Thread*> unlike_threads(const model::Process& process) {
  const std::vector<bool> repeated = repeated_stacks(process);
  std::vector<const Thread*> out;
  for (std::size_t i = 0; i < process.threads.size(); ++i) {
    if (!repeated[i]) {
      out.push_back(&process.threads[i]);
    }
  }
  return out;
}

bool held_elsewhere(const std::vector<const Thread*>& threads, const Thread& thread,
                    const Frame& taker) {
  return std::any_of(threads.begin(), threads.end(), [&](const Thread* other) {
    return other != &thread && may_hold_mutex_of(taker, *other);
  });
}

std::optional<Reentry> reentry(const std::vector<const Thread*>& threads, const Thread& thread) {
  const auto taker = mutex_taker(thread);
  if (!taker || is_recursive(thread, *taker)) {
    return std::nullopt;
  }
  const Frame& takes = thread.frames[*taker];
  const model::WaitsOn* mutex = waits_on(thread, "mutex");
  const auto owner = mutex == nullptr ? std::nullopt : target_thread(*mutex);
  const Frame* through = nullptr;
  bool left = false;  // the library was left between its two frames
  for (std::size_t i = *taker + 1; i < thread.frames.size(); ++i) {
    const Frame& frame = thread.frames[i];
    const bool same = has_lock_of(takes, frame);
    // Destructors are everywhere: only the same function shows that it is entered again.
    const bool again = through == nullptr || !is_destructor(*through) ||
                       plain_function(frame.function) == plain_function(takes.function);
    if (through != nullptr && left && same && again) {
      const bool owned = owner && *owner == thread.tid;
      if (!owned && (owner || held_elsewhere(threads, thread, takes))) {
        return std::nullopt;
      }
      return Reentry{.taker = &takes, .through = through, .outer = &frame, .owned = owned};
    }
    left = left || is_signal(frame.function) || !same;
    // A signal, a collection and an exit say more than the allocation or the code that they
    // interrupt.
    const bool more = through != nullptr &&
                      (allocates(plain_function(through->function)) || is_callback(*through)) &&
                      !allocates(plain_function(frame.function)) && !is_callback(frame);
    through = calls_back(frame) && (through == nullptr || more) ? &frame : through;
  }
  return std::nullopt;
}

std::string reason(const Frame& through) {
  std::string name = plain_function(through.function);
  if (is_signal(through.function)) {
    return "a signal handler";
  }
  if (is_callback(through)) {
    return "a callback";
  }
  if (is_destructor(through)) {
    return "a destructor";
  }
  constexpr std::string_view kHook = "_intercept_";  // of Open MPI
  name.erase(0, name.starts_with(kHook) ? kHook.size() : 0);
  return name == "_dl_fini" || name == "__run_exit_handlers" || name == "__cxa_finalize" ||
                 name == "atexit_callfuncs" || name == "call_ll_exitfuncs"
             ? "an exit handler"
         : allocates(plain_function(through.function)) ? "a hook of " + name
                                                       : "garbage collection";
}

/// "map_insert and cache_search": the two innermost functions that may hold the mutex.
std::string inside_said(const Thread& thread, const Reentry& found) {
  const auto next = static_cast<std::size_t>(found.outer - thread.frames.data()) + 1;
  const Frame* caller = frame_in_code_of(*found.taker, thread, next);
  return caller == nullptr
             ? function_said(*found.outer)
             : fmt::format("{} and {}", function_said(*found.outer), function_said(*caller));
}

Finding entered_twice(const graph::Examination& examination, const model::Process& process,
                      const Thread& thread, const Reentry& found, Confidence confidence) {
  Suspect suspect = suspect_in(examination, process, &thread);
  suspect.confidence = confidence;
  const std::string taker = function_said(*found.taker);
  const std::string outer = function_said(*found.outer);
  const std::string library = found.outer->module.empty() ? outer : found.outer->module;
  suspect.note = fmt::format("{} waits here, in {}, for a mutex", thread_name(thread), taker);
  suspect.evidence = fmt::format(
      "{} of process {} was in {} when {} entered {} again through {}; {}",
      full_thread_name(thread), process.pid, inside_said(thread, found), reason(*found.through),
      library, taker,
      found.owned ? "the mutex names this thread as its owner"
                  : "no other thread is known to be in that code, so it probably holds the mutex");
  const std::vector<Suspect> only = {suspect};
  Finding finding = accuse(examination, kKind, only);
  finding.summary = fmt::format(
      "a thread of {} waits in {} for a mutex of {} that it {}holds already; {} re-entered it",
      process.rank ? who(only) : named(process.pid, "a process"), taker, library,
      found.owned ? "" : "probably ", reason(*found.through));
  if (finding.locations.empty()) {  // compiled code without a line of the user's
    const model::RankSet ranks = process.rank ? model::RankSet{*process.rank} : model::RankSet{};
    finding.locations.push_back(
        location(model::call_site(*found.taker), ranks, "waits here for the mutex"));
    finding.locations.push_back(
        location(model::call_site(*found.outer), ranks, "probably took it before, here"));
  }
  finding.fix = is_signal(found.through->function)
                    ? "Set only a flag in the signal handler, and do its work in a loop or thread."
                : is_callback(*found.through)
                    ? fmt::format(
                          "Call {} not from that callback but from another thread, or "
                          "update {}: it calls back while it holds its own mutex.",
                          library, library)
                    : fmt::format(
                          "Update {}, or switch off what calls it: {} runs while it holds its own "
                          "mutex.",
                          library, reason(*found.through));
  return finding;
}

/// Each is inside the code whose mutex the other one wants, and no third thread is.
bool cross(const model::Process& process, const Thread& one, std::size_t taker_of_one,
           const Thread& other, std::size_t taker_of_other) {
  const Frame& mine = one.frames[taker_of_one];
  const Frame& others = other.frames[taker_of_other];
  const auto third = [&](const Thread& thread) {
    return &thread != &one && &thread != &other &&
           (may_hold_mutex_of(mine, thread) || may_hold_mutex_of(others, thread));
  };
  return !is_same_code(mine, others) &&
         frame_in_code_of(others, one, taker_of_one + 1) != nullptr &&
         frame_in_code_of(mine, other, taker_of_other + 1) != nullptr &&
         std::none_of(process.threads.begin(), process.threads.end(), third);
}

Suspect side(const graph::Examination& examination, const model::Process& process,
             const Thread& thread, const Frame& taker, const Frame& inside, Confidence still) {
  Suspect suspect = suspect_in(examination, process, &thread);
  suspect.confidence = still;
  suspect.note =
      fmt::format("{} waits for the mutex of {}", thread_name(thread), function_said(taker));
  suspect.evidence = fmt::format(
      "{} of process {} waits for a mutex in {} and is inside {}, whose mutex it probably holds",
      full_thread_name(thread), process.pid, function_said(taker), function_said(inside));
  return suspect;
}

Finding crossed(const graph::Examination& examination, const model::Process& process,
                const Thread& one, const Thread& other, Confidence still) {
  const Frame& mine = one.frames[*mutex_taker(one)];
  const Frame& others = other.frames[*mutex_taker(other)];
  const std::vector<Suspect> both = {
      side(examination, process, one, mine, *frame_in_code_of(others, one, 0), still),
      side(examination, process, other, others, *frame_in_code_of(mine, other, 0), still)};
  Finding finding = accuse(examination, kKind, both);
  finding.summary = fmt::format(
      "{} and {} of {} probably wait for each other's mutexes ({} and {}){}", thread_name(one),
      thread_name(other), process.rank ? who(both) : named(process.pid, "a process"),
      function_said(mine), function_said(others), and_who_waits(finding));
  finding.fix =
      "Take these mutexes in the same order everywhere; if both are in a library, update "
      "it.";
  return finding;
}

/// The mutex names its owner, and this thread of the process was not dumped.
std::optional<Finding> owned_by_unknown(const graph::Examination& examination,
                                        const model::Process& process, const Thread& thread) {
  const auto taker = mutex_taker(thread);
  const model::WaitsOn* mutex = waits_on(thread, "mutex");
  const auto owner = mutex == nullptr ? std::nullopt : target_thread(*mutex);
  const auto is_owner = [&owner](const Thread& one) { return one.tid == *owner; };
  if (!taker || !owner || forked_without_exec(examination.job, process) ||
      std::any_of(process.threads.begin(), process.threads.end(), is_owner)) {
    return std::nullopt;
  }
  const std::string function = function_said(thread.frames[*taker]);
  Suspect suspect = suspect_in(examination, process, &thread);
  suspect.confidence = Confidence::kPossible;
  suspect.note = fmt::format("a thread waits here for the mutex of {}", function);
  suspect.evidence = fmt::format(
      "a thread{} waits for a mutex in {}; the mutex names thread {} as its owner, whose stack is "
      "not in the dump",
      process.pid > 0 ? fmt::format(" of process {}", process.pid) : std::string(), function,
      *owner);
  Finding finding = accuse(examination, kKind, {suspect});
  finding.summary = fmt::format("{} waits for a mutex in {}, which thread {} holds{}",
                                process.rank ? who({suspect}) : named(process.pid, "a process"),
                                function, *owner, and_who_waits(finding));
  finding.fix =
      fmt::format("Run `gdb -p {} -batch -ex 'thread apply all bt'`: it shows what thread {} does.",
                  process.pid > 0 ? std::to_string(process.pid) : "PID", *owner);
  return finding;
}

}  // namespace

Findings native_deadlocks(const graph::Examination& examination, const model::Process& process,
                          Confidence still) {
  if (!alive(process)) {
    return {};
  }
  const std::vector<const Thread*> threads = unlike_threads(process);
  std::vector<const Thread*> waiting;
  for (const Thread* const thread : threads) {
    if (const auto found = reentry(threads, *thread)) {
      return {entered_twice(examination, process, *thread, *found,
                            found->owned ? Confidence::kCertain : still)};
    }
    if (mutex_taker(*thread) && !waits_for_gil(*thread)) {
      waiting.push_back(thread);
    }
  }
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    for (std::size_t k = i + 1; k < waiting.size(); ++k) {
      if (cross(process, *waiting[i], *mutex_taker(*waiting[i]), *waiting[k],
                *mutex_taker(*waiting[k]))) {
        return {crossed(examination, process, *waiting[i], *waiting[k], still)};
      }
    }
  }
  for (const Thread* thread : waiting) {
    if (auto found = owned_by_unknown(examination, process, *thread)) {
      return {std::move(*found)};
    }
  }
  return {};
}

}  // namespace ddpdoctor::detectors
