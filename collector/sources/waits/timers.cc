// SPDX-License-Identifier: Apache-2.0
// How long a thread waits at most: sleeps, and polls and locks with a timeout. Arguments of the
// system call point into the target's memory, which is accepted only if it is plausible.
#include <array>
#include <cmath>
#include <ctime>
#include <span>

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "base/text.h"
#include "collector/sources/waits/context.h"

namespace ddpdoctor::sources {

namespace {

constexpr double kNano = 1e-9;
constexpr double kMicro = 1e-6;

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * kNano;
}

/// Seconds, about three centuries: not a real timeout; the thread has continued and the memory was
/// reused.
constexpr double kNobodyWaits = 1e10;

std::optional<double> sane(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > kNobodyWaits) {
    return 0.0;  // it is awake, or will be immediately
  }
  return seconds;
}

std::optional<double> read_timespec(WaitContext& context, pid_t pid, std::uint64_t address) {
  timespec found{};
  if (address == 0 ||
      !context.memory(pid).read(address, std::as_writable_bytes(std::span(&found, 1)))) {
    return std::nullopt;
  }
  return sane(seconds_of(found));
}

#ifdef SYS_select
std::optional<double> read_timeval(WaitContext& context, pid_t pid, std::uint64_t address) {
  timeval found{};
  if (address == 0 ||
      !context.memory(pid).read(address, std::as_writable_bytes(std::span(&found, 1)))) {
    return std::nullopt;
  }
  return sane(static_cast<double>(found.tv_sec) + static_cast<double>(found.tv_usec) * kMicro);
}
#endif

/// The time left until a time on one of the clocks that all processes share.
std::optional<double> left_until(std::uint64_t clock, double time) {
  timespec now{};
  if ((clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME) ||
      clock_gettime(static_cast<clockid_t>(clock), &now) != 0) {
    return std::nullopt;
  }
  return std::max(0.0, time - seconds_of(now));
}

constexpr double kMilli = 1e-3;

/// A timeout in milliseconds; negative means no limit.
std::optional<double> milliseconds(std::uint64_t argument) {
  const auto timeout = static_cast<std::int32_t>(argument);
  return timeout < 0 ? std::nullopt : std::optional(timeout * kMilli);
}

/// A sleep; also select without descriptors, which time.sleep used before Python 3.11.
bool is_sleep(const stacks::Syscall& call) {
  const bool no_descriptors =
      call.arguments[1] == 0 && call.arguments[2] == 0 && call.arguments[3] == 0;
#ifdef SYS_select
  if (call.number == SYS_select) {
    return no_descriptors;
  }
#endif
  return call.number == SYS_nanosleep || call.number == SYS_clock_nanosleep ||
         (call.number == SYS_pselect6 && no_descriptors);
}

/// The timeout of a wait for a lock, an event or a queue.
std::optional<double> futex_limit(WaitContext& context, pid_t pid, const stacks::Syscall& call) {
  const auto operation = static_cast<int>(call.arguments[1]);
  const int command = operation & FUTEX_CMD_MASK;
  if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) {
    return std::nullopt;
  }
  const auto time = read_timespec(context, pid, call.arguments[3]);
  const bool by_wall_clock = (operation & FUTEX_CLOCK_REALTIME) != 0;
  return time && command == FUTEX_WAIT_BITSET
             ? left_until(by_wall_clock ? CLOCK_REALTIME : CLOCK_MONOTONIC, *time)
             : time;
}

}  // namespace

std::optional<double> time_limit(WaitContext& context, const WaitingThread& waiting) {
  if (!waiting.thread.syscall) {
    return std::nullopt;
  }
  const auto& arguments = waiting.thread.syscall->arguments;
  const pid_t pid = waiting.process.row.pid;
  switch (waiting.thread.syscall->number) {
    case SYS_futex:
      return futex_limit(context, pid, *waiting.thread.syscall);
    case SYS_nanosleep:
      return read_timespec(context, pid, arguments[0]);
    case SYS_clock_nanosleep: {
      const auto time = read_timespec(context, pid, arguments[2]);
      const bool until = (arguments[1] & TIMER_ABSTIME) != 0;
      return time && until ? left_until(arguments[0], *time) : time;
    }
#ifdef SYS_select
    case SYS_select:
      return read_timeval(context, pid, arguments[4]);
    case SYS_poll:
      return milliseconds(arguments[2]);
    case SYS_epoll_wait:
      return milliseconds(arguments[3]);
#endif
    case SYS_epoll_pwait:
      return milliseconds(arguments[3]);
    case SYS_ppoll:
      return read_timespec(context, pid, arguments[2]);
    case SYS_pselect6:
      return read_timespec(context, pid, arguments[4]);
    default:
      return std::nullopt;
  }
}

std::optional<WaitTarget> timer_wait(WaitContext& context, const WaitingThread& waiting) {
  const bool sleeps = waiting.thread.syscall && is_sleep(*waiting.thread.syscall);
  const auto limit = sleeps ? time_limit(context, waiting) : std::nullopt;
  if (!limit) {
    return std::nullopt;
  }
  return WaitTarget{.kind = "timer",
                    .target = {},
                    .detail = "sleeps by itself, " + base::duration(*limit) + " left at most",
                    .limit = limit};
}

}  // namespace ddpdoctor::sources
