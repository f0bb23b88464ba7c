// SPDX-License-Identifier: Apache-2.0
// A dump rarely says who holds the GIL. A thread in native code below a Python function holds it
// unless that code has released it, so code that is known to do so is not accused.
#include "collector/detectors/evidence/gil_inversion.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "collector/detectors/evidence/gil_holder.h"
#include "collector/detectors/evidence/native_locks.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/model/native_code.h"

namespace ddpdoctor::detectors {
namespace {

using model::Frame;
using model::Thread;

/// Code that releases the GIL, or that is called without it: torch's operators, ctypes.CDLL, DDP's
/// and autograd's engine.
bool releases_gil(const Frame& frame) {
  constexpr std::array<std::string_view, 9> kReleases = {
      "gil_scoped_release", "AutoNoGIL",      "PyEval_SaveThread",
      "at::_ops::",         "at::redispatch", "Engine::execute",
      "_ctypes_callproc",   "ffi_call",       "PyMutex_Lock"};
  return std::any_of(kReleases.begin(), kReleases.end(), [&frame](std::string_view part) {
    return frame.function.find(part) != std::string::npos;
  });
}

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
    if (releases_gil(thread.frames[i])) {
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

/// A thread that runs in the code of the mutex and does not want the GIL may hold it for a moment.
bool held_by_a_third(const model::Process& process, const Thread& holder, const Frame& taker) {
  return std::any_of(process.threads.begin(), process.threads.end(), [&](const Thread& other) {
    return &other != &holder && !waits_for_gil(other) && !sleeps_in_kernel(other) &&
           may_hold_mutex_of(taker, other);
  });
}

bool owner_is_known(const Thread& waiting) {
  const model::WaitsOn* mutex = waits_on(waiting, "mutex");
  return mutex != nullptr && target_thread(*mutex);
}

/// `holder` wants a mutex and has the GIL; `waiter` wants the GIL and is where the mutex is held.
std::optional<GilInversion> between(const model::Process& process, const Thread& holder,
                                    const Thread& waiter) {
  const auto taker = mutex_taker(holder);
  if (!taker || !waits_for_gil(waiter) || waits_for_gil(holder) || !holder.gil.value_or(true)) {
    return std::nullopt;
  }
  const bool told = holder.gil.value_or(false);
  const bool owned = is_owner(holder, waiter);
  const Frame* inside = frame_in_code_of(holder.frames[*taker], waiter, past_gil(waiter));
  if ((!told && !keeps_gil(holder, *taker)) || (owner_is_known(holder) && !owned) ||
      (!owned && (held_by_a_third(process, holder, holder.frames[*taker]) || inside == nullptr ||
                  !may_hold_mutex(holder.frames[*taker], *inside, waiter)))) {
    return std::nullopt;
  }
  return GilInversion{.holder = &holder,
                      .waiter = &waiter,
                      .taker = &holder.frames[*taker],
                      .inside = inside,
                      .told = told,
                      .owned = owned};
}

}  // namespace

std::optional<GilInversion> gil_inversion(const model::Process& process) {
  for (const Thread& holder : process.threads) {
    const auto others = [&holder](const Thread& thread) {
      return &thread != &holder && may_have_gil(thread);
    };
    if (!mutex_taker(holder) ||
        (!holder.gil.value_or(false) &&
         std::any_of(process.threads.begin(), process.threads.end(), others))) {
      continue;
    }
    for (const Thread& waiter : process.threads) {
      if (auto found = between(process, holder, waiter)) {
        return found;
      }
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
