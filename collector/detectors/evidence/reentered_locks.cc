// SPDX-License-Identifier: Apache-2.0
// Sources: CPython 3.8 to 3.14. Each lock of the table is a threading.Lock, which its own thread
// cannot take twice. A function is a holder only if it keeps the lock around everything that it
// calls; where it waits in a condition it gives the lock back.
#include "collector/detectors/evidence/reentered_locks.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signal_handlers.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/native_code.h"
#include "collector/model/python_waits.h"
#include "collector/model/questions.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

using std::string_view;

struct LibraryLock {
  string_view file;
  string_view lock;
  std::array<string_view, 4> holders;
  std::array<string_view, 7> takers;
};

constexpr std::array<LibraryLock, 6> kLocks = {{
    {.file = "concurrent/futures/thread.py",
     .lock = "_shutdown_lock",
     .holders = {"submit"},
     .takers = {"submit", "shutdown"}},
    {.file = "concurrent/futures/process.py",
     .lock = "_shutdown_lock",
     .holders = {"submit"},
     .takers = {"submit", "shutdown"}},
    {.file = "/queue.py",
     .lock = "mutex",
     .holders = {"put", "get", "task_done", "join"},
     .takers = {"put", "get", "task_done", "join", "qsize", "empty", "full"}},
    {.file = "multiprocessing/queues.py",
     .lock = "_notempty",
     .holders = {"put"},
     .takers = {"put"}},
    // An RLock since 3.13.
    {.file = "multiprocessing/resource_tracker.py",
     .lock = "_lock",
     .holders = {"ensure_running"},
     .takers = {"ensure_running", "_stop"}},
    {.file = "/subprocess.py", .lock = "_waitpid_lock", .holders = {"_wait"}, .takers = {"_wait"}},
}};

template <std::size_t kCount>
bool contains_function(const std::array<string_view, kCount>& all, string_view function) {
  function = program::last_name(function);
  return !function.empty() && std::find(all.begin(), all.end(), function) != all.end();
}

bool is_library_file(const model::Frame& frame, string_view file) {
  if (frame.language != model::Language::kPython) {
    return false;
  }
  return frame.file.ends_with(file) || (file.starts_with('/') && frame.file == file.substr(1));
}

/// A thread that runs, or is in other native code than that of a lock, does not wait for one. In a
/// function that only takes a lock, "active" in a dump of py-spy tells nothing.
bool may_wait_for_lock(const model::Thread& thread, const model::Frame& innermost) {
  const bool takes = model::python_wait(innermost) == model::PythonWait::kLock;
  const model::Frame* native = model::telling_frame(thread);
  const bool elsewhere = native != nullptr && !model::is_interpreter_code(*native) &&
                         native->function.find("acquire") == std::string::npos;
  return (thread.state != 'R' || takes) && !waits_for_gil(thread) && !elsewhere;
}

/// The line of the program at the frame; empty if it is unknown.
string_view line_at(const model::JobModel& job, const model::Frame& frame) {
  const program::SourceText& lines = lines_of(job, frame.file);
  const auto line = lines.find(frame.line);
  return line == lines.end() ? string_view() : string_view(line->second);
}

/// The source does not show that the line does something else.
bool may_take(const model::JobModel& job, const model::Frame& frame) {
  const string_view line = base::trim(line_at(job, frame));
  return line.empty() || line.starts_with("with ") || line.find(".acquire(") != line.npos;
}

bool may_call(const model::JobModel& job, const model::Frame& caller, string_view function) {
  const string_view line = line_at(job, caller);
  const auto calls = program::calls_in(line);
  return std::any_of(calls.begin(), calls.end(), [function](const program::Call& call) {
    return program::last_name(call.callee) == program::last_name(function);
  });
}

bool runs_by_itself(const model::Frame& frame) {
  const string_view name = program::last_name(frame.function);
  return name == "__del__" || is_library_file(frame, "/weakref.py") ||
         (name == "__call__" && is_library_file(frame, "multiprocessing/util.py"));
}

/// Between the holder and the taker: the outermost function that is not the library's own, which
/// the holder's side did not call.
const model::Frame* entry_between(const model::JobModel& job, std::span<const model::Frame> between,
                                  const model::Frame& holder) {
  const auto last = std::find_if(between.rbegin(), between.rend(), runs_by_itself);
  const model::Frame* const finalizer = last == between.rend() ? nullptr : &*last;
  const model::Frame* caller = &holder;
  for (std::size_t i = between.size(); i-- > 0;) {
    const model::Frame& frame = between[i];
    if (frame.language != model::Language::kPython) {
      continue;
    }
    if (program::last_name(frame.function) == "wait" && is_library_file(frame, "/threading.py")) {
      return nullptr;  // the condition has given the lock back
    }
    // A finalizer is seen to be one; without sources, any function may be what the holder called.
    if (&frame == finalizer ||
        (finalizer == nullptr && frame.file != holder.file && model::is_user_file(frame.file) &&
         !may_call(job, *caller, frame.function))) {
      return &frame;
    }
    caller = &frame;
  }
  return nullptr;
}

/// What ran between two lines of the library, as far as the stack and the sources show it.
std::string_view entry_said(const ReenteredLock& found) {
  if (found.destructor) {
    return program::last_name(found.entry->function) == "__del__" ? "a destructor" : "a finalizer";
  }
  return found.handler ? "a signal handler" : "a signal handler or finalizer";
}

/// The function that takes the lock. Python code of threading may be inside it, which only passes
/// the call on: Condition.__enter__.
const model::Frame* taker_of_lock(const model::Thread& thread) {
  const model::Frame* inner = model::innermost_python(thread);
  if (inner == nullptr || model::python_wait(*inner) != model::PythonWait::kLock) {
    return inner;
  }
  const auto rest = std::span<const model::Frame>(thread.frames)
                        .subspan(static_cast<std::size_t>(inner - thread.frames.data()) + 1);
  const auto outer = std::find_if(rest.begin(), rest.end(), [](const model::Frame& frame) {
    return frame.language == model::Language::kPython;
  });
  return outer == rest.end() ? inner : &*outer;
}

/// A finalizer of the standard library: nothing of the program is at its line.
void tell_own_lock(const model::Process& process, const Suspect& suspect,
                   const ReenteredLock& found, Finding& finding) {
  const model::CallSite taker = model::call_site(*found.taker);
  const model::CallSite holder = model::call_site(*found.holder);
  finding.summary =
      fmt::format("a finalizer of {} waits in {}() ({}) for {}, which its own thread took ({}){}",
                  process.rank ? who({suspect}) : named(process.pid, "a process"),
                  program::last_name(found.taker->function), line_of(taker), found.lock,
                  line_of(holder), and_who_waits(finding));
  finding.locations = {location(taker, finding.culprits, "the thread waits here for the lock"),
                       location(suspect.place, finding.culprits,
                                "the finalizer runs here, between two lines of its thread"),
                       location(holder, finding.culprits, "the same thread holds the lock here")};
}

}  // namespace

std::optional<ReenteredLock> reentered_lock(const model::JobModel& job,
                                            const model::Thread& thread) {
  const model::Frame* taker = taker_of_lock(thread);
  if (taker == nullptr || !may_wait_for_lock(thread, *model::innermost_python(thread)) ||
      !may_take(job, *taker)) {
    return std::nullopt;
  }
  const std::span<const model::Frame> frames(thread.frames);
  const auto from = static_cast<std::size_t>(taker - frames.data()) + 1;
  for (const LibraryLock& library : kLocks) {
    if (!is_library_file(*taker, library.file) ||
        !contains_function(library.takers, taker->function)) {
      continue;
    }
    for (std::size_t i = from; i < frames.size(); ++i) {
      const bool holds = is_library_file(frames[i], library.file) &&
                         contains_function(library.holders, frames[i].function) && i > from;
      const model::Frame* entry =
          holds ? entry_between(job, frames.subspan(from, i - from), frames[i]) : nullptr;
      if (entry != nullptr) {
        return ReenteredLock{.taker = taker,
                             .holder = &frames[i],
                             .entry = entry,
                             .lock = library.lock,
                             .destructor = runs_by_itself(*entry),
                             .handler = is_signal_handler(job, *entry)};
      }
    }
  }
  return std::nullopt;
}

std::optional<Finding> waits_for_own_lock(const graph::Examination& examination,
                                          const model::Process& process, Confidence still) {
  for (const model::Thread& thread : process.threads) {
    const auto found =
        alive(process) ? reentered_lock(examination.job, thread) : std::optional<ReenteredLock>();
    if (!found) {
      continue;
    }
    Suspect suspect = suspect_in(examination, process, &thread);
    suspect.place = model::call_site(*found->entry);
    suspect.confidence = still;
    const std::string_view entered = entry_said(*found);
    suspect.note = fmt::format("{} runs here and calls {}()", entered,
                               program::last_name(found->taker->function));
    suspect.evidence = fmt::format(
        "{} of {} is in {}() ({}), which has {}; {} ({}) interrupted it and waits in {}() ({}) for "
        "the same lock",
        full_thread_name(thread), named(process.pid, "the process"),
        program::last_name(found->holder->function), place(model::call_site(*found->holder)),
        found->lock, entered, program::last_name(found->entry->function),
        program::last_name(found->taker->function), place(model::call_site(*found->taker)));
    const auto outer = model::user_frames(thread);
    const auto user = std::find_if(outer.begin(), outer.end(),
                                   [&found](const auto* frame) { return frame > found->holder; });
    const Interruption signal{.handler = found->entry,
                              .interrupted = user == outer.end() ? found->holder : *user};
    Finding finding = accuse(examination, "lock-deadlock", {suspect});
    tell_interruption({suspect}, signal, finding);
    if (!found->handler) {
      finding.locations[std::min<std::size_t>(1, finding.locations.size() - 1)].note =
          "this line was interrupted, and its library held the lock";
    }
    const std::string interrupted = place(model::call_site(*signal.interrupted));
    finding.summary =
        fmt::format("{} of {} waits ({}) for {}, held by the {}() that it interrupted ({}){}",
                    entered, process.rank ? who({suspect}) : named(process.pid, "a process"),
                    place(suspect.place), found->lock, program::last_name(found->holder->function),
                    interrupted, and_who_waits(finding));
    if (found->destructor && !model::is_user_file(found->entry->file)) {
      tell_own_lock(process, suspect, *found, finding);
    }
    if (found->destructor &&
        is_library_file(*found->taker, "multiprocessing/resource_tracker.py")) {
      finding.fix =
          "Update Python: newer versions let one thread take this lock twice. Until then, delete "
          "the "
          "objects that the finalizer cleans up yourself, or call gc.disable() around such calls.";
    } else if (found->destructor) {
      finding.fix = fmt::format(
          "Call {}() in a method that the program calls (close, `with`), not in a destructor: it "
          "may run between any two lines.",
          program::last_name(found->taker->function));
    }
    return finding;
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
