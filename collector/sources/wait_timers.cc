// SPDX-License-Identifier: Apache-2.0
// A thread that only lets time pass: how much of it is left. Arguments of the system call point to
// the target's memory, which is believed only as far as it fits.
#include <array>
#include <cmath>
#include <ctime>
#include <span>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "base/text.h"
#include "collector/sources/wait_context.h"

namespace ddpdoctor::sources {

namespace {

constexpr double kNano = 1e-9;
constexpr double kMicro = 1e-6;

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * kNano;
}

std::optional<double> read_timespec(WaitContext& context, pid_t pid, std::uint64_t address) {
  timespec found{};
  if (address == 0 ||
      !context.memory(pid).read(address, std::as_writable_bytes(std::span(&found, 1)))) {
    return std::nullopt;
  }
  return seconds_of(found);
}

std::optional<double> read_timeval(WaitContext& context, pid_t pid, std::uint64_t address) {
  timeval found{};
  if (address == 0 ||
      !context.memory(pid).read(address, std::as_writable_bytes(std::span(&found, 1)))) {
    return std::nullopt;
  }
  return static_cast<double>(found.tv_sec) + static_cast<double>(found.tv_usec) * kMicro;
}

/// Until a time of one of the clocks that all processes share.
std::optional<double> left_until(std::uint64_t clock, double time) {
  timespec now{};
  if ((clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME) ||
      clock_gettime(static_cast<clockid_t>(clock), &now) != 0) {
    return std::nullopt;
  }
  return std::max(0.0, time - seconds_of(now));
}

/// What is left of the sleep, or for one that was asked for by its length, that length.
std::optional<double> seconds_left(WaitContext& context, const WaitingThread& waiting) {
  const auto& arguments = waiting.thread.syscall->arguments;
  const pid_t pid = waiting.process.row.pid;
  switch (waiting.thread.syscall->number) {
    case SYS_nanosleep:
      return read_timespec(context, pid, arguments[0]);
    case SYS_clock_nanosleep: {
      const auto time = read_timespec(context, pid, arguments[2]);
      const bool until = (arguments[1] & TIMER_ABSTIME) != 0;
      return time && until ? left_until(arguments[0], *time) : time;
    }
#ifdef SYS_select
    case SYS_select:  // time.sleep of Python before 3.11: no descriptors, only the time
      return arguments[1] == 0 && arguments[2] == 0 && arguments[3] == 0
                 ? read_timeval(context, pid, arguments[4])
                 : std::nullopt;
#endif
    case SYS_pselect6:
      return arguments[1] == 0 && arguments[2] == 0 && arguments[3] == 0
                 ? read_timespec(context, pid, arguments[4])
                 : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<WaitTarget> timer_wait(WaitContext& context, const WaitingThread& waiting) {
  const auto seconds = waiting.thread.syscall ? seconds_left(context, waiting) : std::nullopt;
  if (!seconds || !std::isfinite(*seconds) || *seconds < 0) {
    return std::nullopt;
  }
  return WaitTarget{.kind = "timer",
                    .target = fmt::format("seconds:{:.1f}", *seconds),
                    .detail = "sleeps by itself, " + base::duration(*seconds) + " left at most"};
}

}  // namespace ddpdoctor::sources
