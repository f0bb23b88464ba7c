// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/wait_under_lock.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/python_locks.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/observed_objects.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/questions/method_calls.h"

namespace ddpdoctor::detectors {
namespace {

using model::Frame;
using model::Language;
using model::Thread;
using program::last_name;

/// A standard-library call that waits for another thread of the process. The library table has the
/// calls that end it.
struct Wait {
  std::string_view file;
  std::string_view function;
  std::array<std::string_view, 2>
      owners{};  // the classes that have it; none: nothing called ends it
};

constexpr std::array<Wait, 11> kWaits = {{
    {"/queue.py", "put", {"Queue"}},
    {"/queue.py", "get", {"Queue"}},
    {"/queue.py", "join", {"Queue"}},
    {"/threading.py", "wait", {"Event", "Condition"}},
    {"/threading.py", "wait_for", {"Condition"}},
    {"/threading.py", "acquire", {"Semaphore"}},
    {"/threading.py", "join"},
    {"concurrent/futures/_base.py", "result", {"Future"}},
    {"concurrent/futures/_base.py", "exception", {"Future"}},
    {"concurrent/futures/_base.py", "wait"},
    {"concurrent/futures/_base.py", "result_iterator"},
}};

/// The function called by the innermost user line; nullptr if it is a C function.
const Frame* called_directly(const Thread& thread) {
  const auto frames = called_by_user(thread);
  const auto found = std::find_if(frames.rbegin(), frames.rend(), [](const Frame& frame) {
    return frame.language == Language::kPython;
  });
  return found == frames.rend() ? nullptr : &*found;
}

/// The standard-library wait that the user line is in; nullptr if there is none.
const Wait* waits_in(const Thread& thread) {
  const Frame* user = own_user_frame(thread);
  const Frame* called = user == nullptr ? nullptr : called_directly(thread);
  const Frame* innermost = innermost_python(thread);
  if (called == nullptr || innermost == nullptr || !asleep(thread)) {
    return nullptr;
  }
  const auto* const found = std::find_if(kWaits.begin(), kWaits.end(), [called](const Wait& wait) {
    return called->file.ends_with(wait.file) && last_name(called->function) == wait.function;
  });
  const bool is_lock = found != kWaits.end() && found->function == "acquire" &&
                       last_name(innermost->function) != "wait";
  return found == kWaits.end() || is_lock ? nullptr : found;
}

/// The kernel, the arguments or the line show that the wait has a timeout.
bool has_limit(const model::JobModel& job, const Thread& thread) {
  if (thread.waits_on && thread.waits_on->limit) {
    return true;
  }
  for (const Frame& frame : called_by_user(thread)) {
    for (const auto& [name, value] : frame.locals) {
      if ((name == "timeout" && value != "None" && value != "-1") ||
          (name.starts_with("block") && value == "False")) {
        return true;
      }
    }
  }
  const Frame* user = own_user_frame(thread);
  return user != nullptr &&
         program::statement_at(lines_of(job, user->file), user->line).find("timeout") !=
             std::string::npos;
}

/// The call in the user's line that waits: its object is "self.incoming" of `self.incoming.put(x)`;
/// empty if the line does not show it.
program::MethodCall waiting_call(const model::JobModel& job, const Thread& thread,
                                 const Wait& wait) {
  const Frame* user = own_user_frame(thread);
  for (program::MethodCall& call :
       program::calls_at(lines_of(job, user->file), job.sources, user->line)) {
    if (!call.inner && !call.object.empty() && call.method == wait.function) {
      return std::move(call);
    }
  }
  return {};
}

/// A condition releases its lock while it waits: its own, or the lock it was constructed with.
bool gives_back(const Thread& holder, const Wait& wait, const program::MethodCall& awaited,
                const std::string& lock) {
  if (!wait.file.ends_with("threading.py") || !wait.function.starts_with("wait")) {
    return false;
  }
  if (awaited.object.empty() || last_name(awaited.object) == last_name(lock)) {
    return true;
  }
  if (awaited.owner == "Condition" && awaited.made) {
    return static_cast<bool>(awaited.made.field(program::Field::kArguments).first_child());
  }
  // Its class is unknown: an Event keeps the outer lock, and appears as a wait inside a wait.
  return std::count_if(holder.frames.begin(), holder.frames.end(), [](const Frame& frame) {
           return frame.file.ends_with("/threading.py") && last_name(frame.function) == "wait";
         }) < 2;
}

/// Two calls use one object: one call constructs it. Where that is not known, its name decides.
bool is_same_object(const program::MethodCall& a, const program::MethodCall& b) {
  return a.made && b.made ? a.made == b.made : last_name(a.object) == last_name(b.object);
}

/// The source of a function on the thread's stack calls what ends the wait.
bool ends_it(const model::JobModel& job, const Thread& thread, const Wait& wait,
             const program::MethodCall& awaited) {
  if (awaited.object.empty()) {
    return false;
  }
  const auto ends = [&](const program::MethodCall& call) {
    return is_same_object(call, awaited) &&
           std::any_of(wait.owners.begin(), wait.owners.end(), [&](std::string_view owner) {
             return program::ends(call, owner, wait.function) != program::Told::kNo;
           });
  };
  const auto seen = model::seen_objects(job, thread.tid);
  for (const Frame* frame : model::user_frames(thread)) {
    const auto& lines = lines_of(job, frame->file);
    const auto extent = program::function_extent(lines, frame->line);
    const auto calls =
        extent ? program::calls_on(lines, job.sources, extent->first, extent->second, seen)
               : std::vector<program::MethodCall>{};
    if (std::any_of(calls.begin(), calls.end(), ends)) {
      return true;
    }
  }
  return false;
}

bool wants_lock_for_ever(const model::JobModel& job, const Thread& thread) {
  return waits_for_private_lock(job, thread) && lock_wanted_by(job, thread) &&
         !has_limit(job, thread);
}

/// Only another such thread can wake it: it does nothing for others.
bool is_idle(const model::JobModel& job, const Thread& thread) {
  const Frame* python = innermost_python(thread);
  if (python == nullptr || wants_lock_for_ever(job, thread)) {
    return true;  // a native thread cannot end a Python wait
  }
  if (own_user_frame(thread) != nullptr) {
    return waits_in(thread) != nullptr && !has_limit(job, thread);
  }
  constexpr std::array<std::string_view, 3> kIdle = {"/threading.py", "/queue.py",
                                                     "concurrent/futures/thread.py"};
  return asleep(thread) && std::any_of(kIdle.begin(), kIdle.end(), [python](std::string_view file) {
           return python->file.ends_with(file);
         });
}

/// The thread that the holder joins by name, or that runs the work of its future.
bool is_awaited(const Thread& holder, const Wait& wait, const Thread& wanter) {
  if (holder.waits_on && holder.waits_on->target == "thread:" + std::to_string(wanter.tid)) {
    return true;
  }
  return wait.file.ends_with("_base.py") &&
         python_frame_in(wanter, "concurrent/futures/thread.py") != nullptr;
}

std::optional<WaitUnderLock> between(const model::JobModel& job, const model::Process& process,
                                     const Thread& holder, const Thread& wanter) {
  const Wait* wait = waits_in(holder);
  const auto lock = lock_wanted_by(job, wanter);
  if (wait == nullptr || !lock || has_limit(job, holder) ||
      !locks_held_by(job, holder).contains(*lock) || !wants_lock_for_ever(job, wanter)) {
    return std::nullopt;
  }
  const program::MethodCall awaited = waiting_call(job, holder, *wait);
  const bool proven = is_awaited(holder, *wait, wanter) || ends_it(job, wanter, *wait, awaited);
  const auto is_third = [&](const Thread& one) { return &one != &holder && &one != &wanter; };
  const bool helped =
      std::any_of(process.threads.begin(), process.threads.end(), [&](const Thread& one) {
        const bool free = is_third(one) && !is_idle(job, one);
        return free && (!proven || ends_it(job, one, *wait, awaited) ||
                        locks_held_by(job, one).contains(*lock));
      });
  const Thread* main = model::main_thread(process);
  const bool concerns_job =
      main == &holder || main == &wanter ||
      (main != nullptr && innermost_python(*main) != nullptr && is_idle(job, *main));
  if (helped || !concerns_job || gives_back(holder, *wait, awaited, *lock)) {
    return std::nullopt;
  }
  return WaitUnderLock{.holder = &holder,
                       .wanter = &wanter,
                       .lock = *lock,
                       .awaited = awaited.object.empty()
                                      ? std::string()
                                      : awaited.object + "." + std::string(wait->function),
                       .proven = proven};
}

}  // namespace

std::optional<WaitUnderLock> wait_under_lock(const model::JobModel& job,
                                             const model::Process& process) {
  std::optional<WaitUnderLock> found;
  for (const Thread& holder : process.threads) {
    if (waits_in(holder) == nullptr) {
      continue;
    }
    for (const Thread& wanter : process.threads) {
      auto one = &wanter == &holder ? std::nullopt : between(job, process, holder, wanter);
      if (one && (!found || (one->proven && !found->proven))) {
        found = std::move(one);
      }
    }
  }
  return found;
}

}  // namespace ddpdoctor::detectors
