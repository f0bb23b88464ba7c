// SPDX-License-Identifier: Apache-2.0
// gdb stops all threads at one moment, so a thread in take_gil and one without the GIL are seen
// together only if a third one holds it. A thread that computes is not meant: it will release it.
#include "collector/detectors/evidence/gil_holder.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/model/native_code.h"

namespace ddpdoctor::detectors {
namespace {

bool is_native_frame(const model::Frame& frame) {
  return frame.language == model::Language::kNative;
}

bool runs_python(const model::Thread& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), model::is_interpreter_code);
}

/// In the C code of threading.Lock or RLock, called by Python: it has released the GIL.
bool waits_in_lock_of_python(const model::Thread& thread) {
  bool lock = false;
  for (const model::Frame& frame : thread.frames) {
    if (!is_native_frame(frame)) {
      break;
    }
    const bool takes = frame.function.find("PyThread_acquire_lock") != std::string::npos;
    lock = lock || takes;
    if (!takes && model::says_why(frame) && !model::is_interpreter_code(frame) &&
        frame.function.find("acquire") == std::string::npos) {
      return false;
    }
  }
  return lock;
}

/// The pool whose code the thread runs at all, in its own frames or in those that called Python.
const model::NativePool* pool_in(const model::Thread& thread) {
  for (const model::Frame& frame : thread.frames) {
    if (const model::NativePool* pool = model::pool_of(frame)) {
      return pool;
    }
  }
  return nullptr;
}

/// A thread of the pool that Python did not start, and that called Python.
bool calls_from_pool(const model::Thread& thread, std::string_view pool) {
  const auto last = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                 [](const model::Frame& frame) { return !is_native_frame(frame); });
  return std::any_of(thread.frames.rbegin(), last, [pool](const model::Frame& frame) {
    const model::NativePool* own = model::pool_of(frame);
    return own != nullptr && own->name == pool;
  });
}

}  // namespace

std::optional<PoolBehindGil> pool_behind_gil(const model::Process& process) {
  PoolBehindGil out;
  std::vector<const model::Thread*> may_hold;
  for (const model::Thread& thread : process.threads) {
    if (thread.gil) {
      return std::nullopt;
    }
    if (waits_for_gil(thread)) {
      const model::NativePool* pool = pool_in(thread);
      out.pool = pool == nullptr ? out.pool : pool->name;
    } else if (runs_python(thread) && !waits_in_lock_of_python(thread)) {
      may_hold.push_back(&thread);
    }
  }
  const bool all =
      !out.pool.empty() &&
      std::all_of(may_hold.begin(), may_hold.end(), [&out](const model::Thread* thread) {
        const model::Frame* frame = waits_for_native_pool(*thread);
        return thread->state != 'R' && frame != nullptr && model::pool_of(*frame)->name == out.pool;
      });
  if (!all || may_hold.empty()) {
    return std::nullopt;
  }
  const auto inner = std::find_if(
      may_hold.begin(), may_hold.end(),
      [&out](const model::Thread* thread) { return calls_from_pool(*thread, out.pool); });
  out.holder = inner == may_hold.end() ? may_hold.front() : *inner;
  out.only = may_hold.size() == 1;
  return out;
}

bool sleeps_in_kernel(const model::Thread& thread) {
  constexpr std::array<std::string_view, 14> kWaits = {
      "poll",  "select", "epoll_wait", "accept", "recv",  "connect",  "_read",
      "futex", "cond_",  "sem_",       "wait4",  "sleep", "lll_lock", "flock"};
  if (thread.frames.empty()) {
    return false;
  }
  const model::Frame& innermost = thread.frames.front();
  const std::string_view name = innermost.function;
  return model::is_libc_code(innermost) && (name == "read" || base::contains_any(name, kWaits));
}

const model::Thread* holder_by_elimination(const model::Process& process) {
  const model::Thread* holder = nullptr;
  bool wanted = false;
  for (const model::Thread& thread : process.threads) {
    if (thread.gil || thread.frames.empty() || !is_native_frame(thread.frames.front())) {
      return nullptr;
    }
    if (waits_for_gil(thread)) {
      wanted = true;
      continue;
    }
    if (!runs_python(thread) || waits_in_lock_of_python(thread)) {
      continue;
    }
    if (holder != nullptr) {
      return nullptr;
    }
    holder = &thread;
  }
  return wanted && holder != nullptr && sleeps_in_kernel(*holder) ? holder : nullptr;
}

}  // namespace ddpdoctor::detectors
