// SPDX-License-Identifier: Apache-2.0
// Locks inside one process: the GIL, pthread mutexes, joins of threads. Only if the owner is known
// or the kind of lock matters (multiprocessing's semaphores).
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/text.h"
#include "collector/sources/waits/context.h"

namespace ddpdoctor::sources {

namespace {

// Frames between a thread's sleep and the function that caused it.
constexpr std::size_t kInnermost = 8;

/// The C library's frames of a wait, which do not show what the thread waits for.
bool is_plumbing(const stacks::Frame& frame) {
  const std::string_view name = frame.function;
  return frame.module.starts_with("libc.") || frame.module.starts_with("libc-") ||
         frame.module.starts_with("libpthread") || name.empty() || base::contains(name, "futex") ||
         name.starts_with("pthread_cond_") || name.starts_with("__pthread_cond") ||
         name.starts_with("___pthread_cond") || name == "syscall";
}

/// A stripped interpreter has no symbol take_gil, but no other wait of it uses this function: its
/// other locks are semaphores.
bool is_stripped_take_gil(const stacks::Frame& frame, const stacks::Frame& inner) {
  return frame.language == stacks::Language::kNative && frame.function.empty() &&
         (frame.module.starts_with("python3") || frame.module.starts_with("libpython3")) &&
         inner.function.find("pthread_cond_timedwait") != std::string::npos;
}

/// take_gil, or its caller if the interpreter is stripped or inlined it.
bool waits_for_gil(const stacks::ThreadStack& thread) {
  constexpr std::array<std::string_view, 5> kTakers{"take_gil", "PyEval_RestoreThread",
                                                    "PyEval_AcquireThread", "PyGILState_Ensure",
                                                    "_PyThreadState_Attach"};
  const std::size_t count = std::min(thread.frames.size(), kInnermost);
  for (std::size_t i = 0; i < count; ++i) {
    const stacks::Frame& frame = thread.frames[i];
    if (frame.language == stacks::Language::kPython) {
      return false;
    }
    if (i > 0 && is_stripped_take_gil(frame, thread.frames[i - 1])) {
      return true;
    }
    if (!is_plumbing(frame)) {
      return std::any_of(kTakers.begin(), kTakers.end(), [&frame](std::string_view taker) {
        return base::contains(frame.function, taker);
      });
    }
  }
  return false;
}

bool has_native(const stacks::ThreadStack& thread, std::string_view part) {
  const std::size_t count = std::min(thread.frames.size(), kInnermost);
  return std::any_of(
      thread.frames.begin(), thread.frames.begin() + static_cast<std::ptrdiff_t>(count),
      [part](const stacks::Frame& frame) {
        return frame.language == stacks::Language::kNative && base::contains(frame.function, part);
      });
}

const stacks::ThreadStack* thread_of(const stacks::ProcessStacks& process, pid_t tid) {
  const auto found = std::find_if(
      process.threads.begin(), process.threads.end(), [tid](const stacks::ThreadStack& thread) {
        return thread.tid == tid || (thread.inner_tid != 0 && thread.inner_tid == tid);
      });
  return found == process.threads.end() ? nullptr : &*found;
}

std::string thread_name(const stacks::ThreadStack& thread) {
  return fmt::format(
      "thread {} ({})", thread.tid,
      base::printable(thread.python_name.empty() ? thread.name : thread.python_name));
}

WaitTarget gil_target(const WaitingThread& waiting) {
  WaitTarget target{.kind = "gil", .target = {}, .detail = "the holder could not be read"};
  if (waiting.stacks.python && waiting.stacks.python->gil_holder &&
      !waiting.stacks.python->gil_moving) {
    const pid_t holder = *waiting.stacks.python->gil_holder;
    const stacks::ThreadStack* thread = thread_of(waiting.stacks, holder);
    target.target = fmt::format("thread:{}", thread == nullptr ? holder : thread->tid);
    target.detail = thread == nullptr
                        ? fmt::format("held by thread {}, which was not captured", holder)
                        : "held by " + thread_name(*thread);
  } else if (waiting.stacks.python && waiting.stacks.python->gil_moving) {
    target.detail = "it changes hands";
  }
  return target;
}

WaitTarget mutex_target(const WaitContext& context, const WaitingThread& waiting, pid_t owner) {
  WaitTarget target{.kind = "mutex", .target = fmt::format("thread:{}", owner), .detail = {}};
  if (const stacks::ThreadStack* thread = thread_of(waiting.stacks, owner)) {
    target.target = fmt::format("thread:{}", thread->tid);
    target.detail = "held by " + thread_name(*thread);
    return target;
  }
  target.detail = fmt::format("owner {} is not a thread of this process", owner);
  const stacks::ProcessStacks* parent = context.stacks_of(waiting.process.row.ppid);
  if (parent != nullptr && thread_of(*parent, owner) != nullptr) {
    target.detail += fmt::format(
        ": it is a thread of its parent, {}, and held the lock when this process was forked",
        context.describe(parent->pid));
  } else {
    target.detail +=
        ": it held the lock when this process was forked, or ended without releasing it";
  }
  return target;
}

/// A futex wait and its arguments.
struct FutexWait {
  std::uint64_t address = 0;
  bool process_private = false;
  bool priority_inheritance = false;
  std::uint32_t value = 0;
};

std::optional<FutexWait> futex_wait(const stacks::ThreadStack& thread) {
  if (!thread.syscall || thread.syscall->number != SYS_futex) {
    return std::nullopt;
  }
  const auto operation = static_cast<std::uint32_t>(thread.syscall->arguments[1]);
  const std::uint32_t command = operation & static_cast<std::uint32_t>(FUTEX_CMD_MASK);
  const bool inherits = command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2;
  if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET && !inherits) {
    return std::nullopt;
  }
  return FutexWait{.address = thread.syscall->arguments[0],
                   .process_private = (operation & FUTEX_PRIVATE_FLAG) != 0,
                   .priority_inheritance = inherits,
                   .value = static_cast<std::uint32_t>(thread.syscall->arguments[2])};
}

/// pthread_join sleeps on the tid word that the kernel clears when the thread exits: a shared futex
/// whose value is that tid.
std::optional<WaitTarget> join_wait(WaitContext& context, const WaitingThread& waiting,
                                    const FutexWait& futex) {
  const auto tid = static_cast<pid_t>(futex.value);
  if (futex.process_private || tid <= 0 || tid == waiting.thread.tid) {
    return std::nullopt;
  }
  const stacks::ThreadStack* joined = thread_of(waiting.stacks, tid);
  const auto word = context.memory(waiting.process.row.pid).get<std::uint32_t>(futex.address);
  if (joined == nullptr || word != futex.value) {
    return std::nullopt;
  }
  return WaitTarget{.kind = "thread",
                    .target = fmt::format("thread:{}", joined->tid),
                    .detail = "joins " + thread_name(*joined)};
}

/// Reads glibc's pthread_mutex_t (lock word, count, owner); only if frames show a mutex and the
/// capture found no owner.
std::optional<pid_t> owner_in_memory(WaitContext& context, const WaitingThread& waiting,
                                     const FutexWait& futex) {
  constexpr std::uint64_t kOwner = 8;
  constexpr std::uint32_t kContended = 2;
  auto& memory = context.memory(waiting.process.row.pid);
  if (futex.priority_inheritance) {
    const auto word = memory.get<std::uint32_t>(futex.address);
    const auto owner =
        word ? static_cast<pid_t>(*word & static_cast<std::uint32_t>(FUTEX_TID_MASK)) : 0;
    return owner > 0 ? std::optional(owner) : std::nullopt;
  }
  // __lll_lock_wait_private is used for bare lock words (malloc, stdio, atexit), which have no
  // owner.
  const bool locking =
      (has_native(waiting.thread, "mutex_lock") || has_native(waiting.thread, "lll_lock_wait")) &&
      !has_native(waiting.thread, "lll_lock_wait_private");
  const auto owner = locking && futex.value == kContended
                         ? memory.get<std::int32_t>(futex.address + kOwner)
                         : std::nullopt;
  constexpr std::int32_t kLargestTid = 1 << 22;  // PID_MAX_LIMIT
  return owner && *owner > 0 && *owner <= kLargestTid ? std::optional<pid_t>(*owner) : std::nullopt;
}

}  // namespace

std::optional<WaitTarget> lock_wait(WaitContext& context, const WaitingThread& waiting) {
  if (waits_for_gil(waiting.thread)) {
    return gil_target(waiting);
  }
  if (waiting.thread.mutex_owner) {
    return mutex_target(context, waiting, *waiting.thread.mutex_owner);
  }
  const auto futex = futex_wait(waiting.thread);
  if (!futex) {
    return std::nullopt;
  }
  if (const auto owner = owner_in_memory(context, waiting, *futex)) {
    return mutex_target(context, waiting, *owner);
  }
  if (auto joined = join_wait(context, waiting, *futex)) {
    return joined;
  }
  if (has_native(waiting.thread, "SemLock_acquire")) {
    return WaitTarget{.kind = "semaphore",
                      .target = {},
                      .detail = "a semaphore of multiprocessing, which has no owner"};
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::sources
