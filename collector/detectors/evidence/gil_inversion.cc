// SPDX-License-Identifier: Apache-2.0
// A dump rarely says who holds the GIL. A thread in native code below a Python function holds it
// unless that code has released it, so code that is known to do so is not accused.
#include "collector/detectors/evidence/gil_inversion.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/evidence/gil_holder.h"
#include "collector/detectors/evidence/native_locks.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/native_code.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using model::Frame;
using model::Thread;

/// The GIL is held where Python called the function that waits, by the frames in between. An
/// extension may release it around a lock of Python's C interface.
bool keeps_gil(const Thread& thread, std::size_t taker) {
  const auto end = thread.frames.begin() + static_cast<std::ptrdiff_t>(taker);
  if (std::any_of(thread.frames.begin(), end, [](const Frame& frame) {
        return frame.function.starts_with("PyThread_acquire_lock");
      })) {
    return false;
  }
  for (std::size_t i = taker; i < thread.frames.size(); ++i) {
    if (model::is_interpreter_code(thread.frames[i])) {
      return true;
    }
    if (model::releases_gil(thread.frames[i].function)) {
      return false;
    }
  }
  return false;
}

/// Whether the thread may have the GIL at this moment. One in a system call has released it, or it
/// would be a holder; of a thread without native frames nothing is known.
bool may_have_gil(const Thread& thread) {
  if (thread.gil || waits_for_gil(thread)) {
    return thread.gil.value_or(false);
  }
  if (thread.frames.empty()) {
    return false;  // only its number is known
  }
  const Frame& innermost = thread.frames.front();
  if (innermost.language == model::Language::kPython) {
    return true;
  }
  const bool python =
      std::any_of(thread.frames.begin(), thread.frames.end(), model::is_interpreter_code);
  return python && !sleeps_in_kernel(thread);
}

/// The first frame outside those that take the GIL.
std::size_t past_gil(const Thread& thread) {
  std::size_t past = 0;
  for (std::size_t i = 0; i < thread.frames.size(); ++i) {
    const std::string& name = thread.frames[i].function;
    if (model::takes_gil(name) || model::enters_python(name) ||
        name.find("gil_scoped_release") != std::string::npos ||
        name.find("PyThreadState") != std::string::npos) {
      past = i + 1;
    } else if (past > 0) {
      break;
    }
  }
  return past;
}

/// A function of the library that only shares the file with `taker` must have called back into
/// Python: on the way back from a call, it takes the GIL after its locks are released.
bool may_hold_mutex(const Frame& taker, const Frame& inside, const Thread& waiter) {
  const auto calls_back = [](const Frame& frame) { return model::enters_python(frame.function); };
  return !class_of(taker.function).empty() ||
         plain_function(taker.function) == plain_function(inside.function) ||
         std::any_of(waiter.frames.begin(), waiter.frames.end(), calls_back);
}

bool is_owner(const Thread& waiting, const Thread& other) {
  const model::WaitsOn* mutex = waits_on(waiting, "mutex");
  const auto owner = mutex == nullptr ? std::nullopt : target_thread(*mutex);
  return owner && *owner == other.tid;
}

bool owner_is_known(const Thread& waiting) {
  const model::WaitsOn* mutex = waits_on(waiting, "mutex");
  return mutex != nullptr && target_thread(*mutex);
}

/// What each thread of a process does, read once: a dump may have thousands.
struct Signs {
  const Thread* thread;
  std::optional<std::size_t> taker;  // the frame that waits for a mutex
  bool wants_gil;
  bool may_have_gil;
  bool sleeps;
  bool repeated;  // its stack is compared with no other
};

std::vector<Signs> signs_of(const model::Process& process) {
  std::vector<Signs> out;
  const std::vector<bool> repeated = repeated_stacks(process);
  out.reserve(process.threads.size());
  for (const Thread& thread : process.threads) {
    const bool again = repeated[out.size()];
    out.push_back({.thread = &thread,
                   .taker = mutex_taker(thread),
                   .wants_gil = waits_for_gil(thread),
                   .may_have_gil = may_have_gil(thread),
                   .sleeps = sleeps_in_kernel(thread),
                   .repeated = again});
  }
  return out;
}

/// A thread that runs in the code of the mutex and does not want the GIL may hold it for a moment.
bool held_by_a_third(const std::vector<Signs>& all, const Signs& holder, const Frame& taker) {
  return std::any_of(all.begin(), all.end(), [&](const Signs& other) {
    return other.thread != holder.thread && !other.wants_gil && !other.sleeps && !other.repeated &&
           may_hold_mutex_of(taker, *other.thread);
  });
}

/// It wants a mutex, and may have the GIL.
bool may_be_holder(const std::vector<Signs>& all, const Signs& one) {
  const auto other = [&one](const Signs& thread) {
    return thread.thread != one.thread && thread.may_have_gil;
  };
  const std::optional<bool> told = one.thread->gil;
  return one.taker && !one.wants_gil && told.value_or(true) &&
         (told.value_or(false) ||
          (keeps_gil(*one.thread, *one.taker) && std::none_of(all.begin(), all.end(), other)));
}

/// `holder` wants a mutex and has the GIL; the waiter wants the GIL and is where the mutex is held.
std::optional<GilInversion> inversion_of(const std::vector<Signs>& all, const Signs& holder) {
  const Frame& taker = holder.thread->frames[*holder.taker];
  const bool known = owner_is_known(*holder.thread);
  const bool third = !known && held_by_a_third(all, holder, taker);
  for (const Signs& waiter : all) {
    if (!waiter.wants_gil) {
      continue;
    }
    const bool owned = is_owner(*holder.thread, *waiter.thread);
    if (!owned && (known || third || waiter.repeated)) {
      continue;
    }
    const Frame* inside = frame_in_code_of(taker, *waiter.thread, past_gil(*waiter.thread));
    if (owned || (inside != nullptr && may_hold_mutex(taker, *inside, *waiter.thread))) {
      return GilInversion{.holder = holder.thread,
                          .waiter = waiter.thread,
                          .taker = &taker,
                          .inside = inside,
                          .told = holder.thread->gil.value_or(false),
                          .owned = owned};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<GilInversion> gil_inversion(const model::Process& process) {
  const std::vector<Signs> all = signs_of(process);
  for (const Signs& one : all) {
    const bool compared = !one.repeated || owner_is_known(*one.thread);
    if (compared && may_be_holder(all, one)) {
      if (auto found = inversion_of(all, one)) {
        return found;
      }
    }
  }
  return std::nullopt;
}

void add_functions(const GilInversion& found, Finding& finding) {
  const std::array<std::pair<const model::Thread*, const model::Frame*>, 2> both = {
      {{found.holder, found.taker}, {found.waiter, found.inside}}};
  for (const auto& [thread, frame] : both) {
    if (frame != nullptr) {
      finding.locations.push_back(location(model::call_site(*frame), finding.culprits,
                                           fmt::format("thread {} waits in it", thread->tid)));
    }
  }
}

}  // namespace ddpdoctor::detectors
