// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/target/ptrace_stop.h"

#include <cerrno>
#include <csignal>
#include <elf.h>
#include <sched.h>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

namespace ddpdoctor::stacks {

namespace {

using Clock = std::chrono::steady_clock;

/// Releases a stopped thread, with the signal it was about to receive.
class Halted {
 public:
  Halted(pid_t tid, int halt) : tid_(tid), signal_(pending_signal(halt)) {}
  Halted(const Halted&) = delete;
  Halted& operator=(const Halted&) = delete;
  Halted(Halted&&) = delete;
  Halted& operator=(Halted&&) = delete;
  ~Halted() {
    ::ptrace(PTRACE_DETACH, tid_, 0, signal_);
  }

 private:
  /// Our own interrupt and a group-stop have no signal to deliver; a signal-delivery-stop has one
  /// (ptrace(2)).
  static long pending_signal(int halt) {
    return (halt >> 8) == PTRACE_EVENT_STOP ? 0 : halt & 0x7f;
  }

  pid_t tid_;
  long signal_;
};

std::optional<Registers> read_registers(pid_t tid) {
  user_regs_struct raw{};
  iovec piece{.iov_base = &raw, .iov_len = sizeof(raw)};
  if (::ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &piece) != 0 || piece.iov_len != sizeof(raw)) {
    return std::nullopt;
  }
  return registers_of(raw);
}

/// Waits until the thread stops. Returns signal and event (signal | event << 8); `problem` has the
/// reason for a failure.
std::optional<int> wait_for_halt(pid_t tid, Clock::time_point until, std::string& problem) {
  constexpr auto kEager = std::chrono::milliseconds(2);
  const auto eager_until = Clock::now() + kEager;
  while (true) {
    // Peeks without reaping: the thread may be the main thread of a child whose parent waits for
    // its exit status.
    siginfo_t seen{};
    const int answer = ::waitid(P_PID, static_cast<id_t>(tid), &seen,
                                WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL);
    if (answer == 0 && seen.si_pid == tid && seen.si_code == CLD_TRAPPED) {
      return seen.si_status;
    }
    if ((answer != 0 && errno != EINTR) || seen.si_pid == tid) {
      problem = "the thread ended while we looked";
      return std::nullopt;
    }
    const auto now = Clock::now();
    if (now >= until) {
      problem = "the thread did not stop in time (it waits in the kernel, or gets no CPU)";
      return std::nullopt;
    }
    if (now < eager_until) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
}

StopOutcome stop_and_look(pid_t tid, std::chrono::milliseconds deadline,
                          const std::function<void(const Registers&)>& look) {
  StopOutcome outcome;
  const auto begin = Clock::now();
  if (::ptrace(PTRACE_SEIZE, tid, 0, 0) != 0) {
    outcome.problem = errno == ESRCH
                          ? "the thread ended while we looked"
                          : "it cannot be stopped: " + std::generic_category().message(errno);
    return outcome;
  }
  if (::ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0) {
    outcome.problem = "the thread ended while we looked";
    return outcome;
  }
  const auto halt = wait_for_halt(tid, begin + deadline, outcome.problem);
  if (!halt) {
    return outcome;
  }
  const auto halted_at = Clock::now();
  {
    const Halted halted(tid, *halt);
    if (const auto registers = read_registers(tid)) {
      look(*registers);
      outcome.stopped = true;
    } else {
      outcome.problem = fmt::format("its registers cannot be read (no {} thread?)", kMachineName);
    }
  }
  outcome.milliseconds =
      std::chrono::duration<double, std::milli>(Clock::now() - halted_at).count();
  return outcome;
}

}  // namespace

StopOutcome with_stopped_thread(pid_t tid, std::chrono::milliseconds deadline,
                                const std::function<void(const Registers&)>& look) {
  StopOutcome outcome;
  std::jthread([&] { outcome = stop_and_look(tid, deadline, look); }).join();
  return outcome;
}

}  // namespace ddpdoctor::stacks
