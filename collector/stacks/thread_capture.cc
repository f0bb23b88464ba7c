// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/thread_capture.h"

#include <chrono>
#include <fcntl.h>
#include <thread>

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/text.h"
#include "collector/stacks/target/proc_file.h"
#include "collector/stacks/target/ptrace_stop.h"

namespace ddpdoctor::stacks {

namespace {

// Stacks of training processes use about 5 KB; what is beyond the copy is read on demand and
// checked.
constexpr std::size_t kStackBytes = std::size_t{64} << 10U;
constexpr std::size_t kStoppedStackBytes = std::size_t{256} << 10U;
constexpr int kAttempts = 5;
constexpr int kPatientAttempts = 40;  // used if stopping is forbidden

/// True if stopping the thread would show more of its stack.
bool wants_a_stop(const Unwound& native) {
  return native.unproven || native.end == UnwindEnd::kUnknownRegister;
}

bool waits_for_futex(const Syscall& call) {
  const auto operation = static_cast<int>(call.arguments[1]) & FUTEX_CMD_MASK;
  return call.number == SYS_futex && (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET ||
                                      operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2);
}

/// The stop interrupted the system call that the look before it showed.
bool is_still_in_call(const CapturedThread& before, const Registers& halted) {
  return before.stack.syscall && halted[kProgramCounter] == before.call_site &&
         halted[kStackPointer] == before.stack_pointer;
}

/// "123 (gdb)": TracerPid is the tracing thread, but people know its process.
std::string process_of(pid_t tid) {
  const auto status = read_proc_file(AT_FDCWD, fmt::format("/proc/{}/status", tid));
  const auto pid = status ? status_field(*status, "Tgid") : std::nullopt;
  const auto name = status ? status_field(*status, "Name") : std::nullopt;
  return pid && name ? fmt::format("{} ({})", *pid, base::printable(*name))
                     : fmt::format("{}", tid);
}

}  // namespace

ThreadCapture::ThreadCapture(LiveTarget& target, const ProcTasks& tasks, PythonReader* python,
                             const CaptureOptions& options)
    : target_(target),
      tasks_(tasks),
      python_(python),
      options_(options),
      copy_(target.memory(), kStackBytes) {}

bool ThreadCapture::describe(CapturedThread& thread) const {
  const auto name = tasks_.name(thread.stack.tid);
  if (!name) {
    return false;
  }
  thread.stack.name = name->name;
  thread.stack.state = name->state;
  thread.stack.wchan = tasks_.wchan(thread.stack.tid);
  return true;
}

void ThreadCapture::read_python(CapturedThread& thread, std::optional<RemoteAddress> python_state) {
  thread.python.clear();
  thread.has_python_state = python_state.has_value();
  if (python_ != nullptr && python_state) {
    thread.python = python_->read_stack(*python_state);
    thread.handles = python_->handled_exception(*python_state);
  }
}

void ThreadCapture::read_mutex(CapturedThread& thread) {
  // glibc, struct __pthread_mutex_s: lock, count, owner. Whether it is a mutex is known after
  // frames have names.
  constexpr RemoteAddress kOwnerOffset = 8;
  thread.mutex_word_owner.reset();
  if (thread.stack.syscall && waits_for_futex(*thread.stack.syscall)) {
    thread.mutex_word_owner =
        target_.memory().get<pid_t>(thread.stack.syscall->arguments[0] + kOwnerOffset);
  }
}

ThreadCapture::Attempt ThreadCapture::look_without_stop(CapturedThread& thread,
                                                        std::optional<RemoteAddress> python_state) {
  ThreadStack& stack = thread.stack;
  const auto before = tasks_.run_count(stack.tid);
  const auto blocked = tasks_.blocked(stack.tid);
  if (!before || !blocked) {
    stack.problem = blocked ? "its run count cannot be read" : blocked.error().what;
    return Attempt::kFailed;
  }
  if (blocked->running) {
    return Attempt::kRunning;
  }
  target_.memory().forget();
  stack.syscall = blocked->syscall;
  thread.stack_pointer = blocked->registers[kStackPointer];
  thread.call_site = blocked->registers[kProgramCounter];
  if (options_.native && !copy_.take(thread.stack_pointer, target_.maps())) {
    stack.problem = fmt::format("its stack at {:#x} cannot be read", thread.stack_pointer);
    return target_.refresh_maps() ? Attempt::kMoved : Attempt::kFailed;
  }
  read_python(thread, python_state);
  read_mutex(thread);
  if (!describe(thread) || tasks_.run_count(stack.tid) != before) {
    return Attempt::kMoved;
  }
  if (options_.native) {
    Walk walk{.target = target_, .stack = copy_};
    thread.native = unwind(walk, blocked->registers);
    if (thread.native.end == UnwindEnd::kUnmapped && target_.refresh_maps()) {
      return Attempt::kMoved;
    }
    if (copy_.went_outside() && tasks_.run_count(stack.tid) != before) {
      return Attempt::kMoved;
    }
  }
  stack.method = CaptureMethod::kNoStop;
  stack.run_count = *before;
  stack.problem.clear();
  return Attempt::kDone;
}

/// The outer frames of a running thread: those that two reads show in the same place with the same
/// code.
bool ThreadCapture::look_twice(CapturedThread& thread, std::optional<RemoteAddress> python_state) {
  if (python_ == nullptr || !python_state) {
    return false;
  }
  target_.memory().forget();
  const RawPythonStack before = python_->read_stack(*python_state);
  target_.memory().forget();
  read_python(thread, python_state);
  RawPythonStack& now = thread.python;
  std::size_t same = 0;
  while (same < before.size() && same < now.size()) {
    const RawPythonFrame& old = before[before.size() - 1 - same];
    const RawPythonFrame& one = now[now.size() - 1 - same];
    if (old.address != one.address || old.code != one.code) {
      break;
    }
    ++same;
  }
  now.erase(now.begin(), now.end() - static_cast<std::ptrdiff_t>(same));
  thread.handles = 0;
  thread.stack.method = CaptureMethod::kNoStop;
  thread.stack.problem.clear();
  return same > 0;
}

/// A thread that sleeps again in the call from which the stop took it has not moved: its run count
/// is that of before.
void ThreadCapture::leave_out_our_stop(const CapturedThread& before, CapturedThread& stopped) {
  constexpr int kLooks = 100;  // the machine may be busy
  const pid_t tid = before.stack.tid;
  for (int i = 0; stopped.stack.syscall && i < kLooks; ++i) {
    const auto blocked = tasks_.blocked(tid);
    if (blocked && !blocked->running && is_still_in_call(before, blocked->registers)) {
      const auto now = tasks_.run_count(tid);
      if (now && *now > before.stack.run_count) {
        ProcTasks::leave_out_runs(tid, *now - before.stack.run_count);
      }
      stopped.stack.run_count = before.stack.run_count;
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(i < 20 ? 50 : 250));
  }
}

bool ThreadCapture::look_stopped(CapturedThread& thread,
                                 std::optional<RemoteAddress> python_state) {
  CapturedThread stopped;
  stopped.stack = thread.stack;
  StackCopy copy(target_.memory(), kStoppedStackBytes);
  // First the walk uses the copy, after the release. If it needs memory outside the copy (a signal
  // stack, a very deep stack), a second stop walks while the thread is stopped; all files are open
  // by then.
  for (const bool walk_inside : {false, true}) {
    Registers registers;
    const auto walk_now = [&] {
      Walk walk{.target = target_, .stack = copy};
      stopped.native = unwind(walk, registers);
    };
    const StopOutcome outcome = with_stopped_thread(
        stopped.stack.tid, options_.halt_deadline, [&](const Registers& halted) {
          registers = halted;
          target_.memory().forget();
          stopped.stack_pointer = registers[kStackPointer];
          if (is_still_in_call(thread, registers)) {
            stopped.mutex_word_owner = thread.mutex_word_owner;
            stopped.call_site = thread.call_site;
          } else {
            stopped.stack.syscall.reset();
          }
          copy.take(registers[kStackPointer], target_.maps());
          read_python(stopped, python_state);
          stopped.stack.run_count = tasks_.run_count(stopped.stack.tid).value_or(0);
          if (walk_inside) {
            walk_now();
          }
        });
    stopped.stack.stopped_ms = std::max(stopped.stack.stopped_ms, outcome.milliseconds);
    if (!outcome.stopped) {
      thread.stack.problem = outcome.problem;
      return walk_inside;  // the first walk is valid
    }
    leave_out_our_stop(thread, stopped);
    if (options_.native && !walk_inside) {
      walk_now();
    }
    stopped.stack.method = CaptureMethod::kStopped;
    stopped.stack.problem.clear();
    thread = stopped;
    const bool needs_more = copy.went_outside() ||
                            (stopped.native.end == UnwindEnd::kUnmapped && target_.refresh_maps());
    if (!options_.native || !needs_more) {
      break;
    }
  }
  return true;
}

bool ThreadCapture::may_stop(const CapturedThread& thread) const {
  // A thread in uninterruptible sleep does not stop; state t means that another tracer stopped it.
  return options_.allow_stop && thread.stack.state != 'D' && thread.stack.state != 't';
}

ThreadCapture::Attempt ThreadCapture::climb(CapturedThread& thread,
                                            std::optional<RemoteAddress> python_state) {
  Attempt attempt = Attempt::kFailed;
  const bool impatient = options_.allow_stop || options_.glance;
  const int attempts = impatient ? kAttempts : kPatientAttempts;
  for (int i = 0; i < attempts; ++i) {
    attempt = look_without_stop(thread, python_state);
    if (attempt == Attempt::kDone || attempt == Attempt::kFailed) {
      return attempt;
    }
    if (attempt == Attempt::kRunning) {
      std::this_thread::sleep_for(std::chrono::microseconds(50 * (i + 1)));
    }
  }
  return attempt;
}

CapturedThread ThreadCapture::capture(pid_t tid, std::optional<RemoteAddress> python_state) {
  CapturedThread thread;
  thread.stack.tid = tid;
  thread.stack.inner_tid = tasks_.inner_tid(tid);
  if (!describe(thread)) {
    thread.stack.problem = "the thread ended while we looked";
    return thread;
  }
  if (thread.stack.state == 'Z' || thread.stack.state == 'X') {
    thread.stack.problem = "the thread has ended (zombie)";
    return thread;
  }
  const Attempt attempt = climb(thread, python_state);
  if (options_.glance && (attempt == Attempt::kRunning || attempt == Attempt::kMoved) &&
      look_twice(thread, python_state)) {
    return thread;
  }
  if (attempt == Attempt::kDone && !(options_.native && wants_a_stop(thread.native))) {
    return thread;
  }
  if (attempt == Attempt::kFailed) {
    if (!tasks_.name(tid)) {
      thread.stack.problem = "the thread ended while we looked";
    }
    return thread;
  }
  const bool stops = may_stop(thread);
  if (stops && look_stopped(thread, python_state)) {
    return thread;
  }
  if (attempt == Attempt::kDone) {
    thread.stack.problem.clear();  // the inferred frames stay, marked as such
    return thread;
  }
  thread.native = {};
  const std::string problem = thread.stack.problem;
  if (stops && look_twice(thread, python_state)) {  // it got no CPU for the stop
    return thread;
  }
  thread.stack.problem = problem;
  thread.python.clear();
  if (const pid_t tracer = tasks_.tracer(tid); tracer != 0) {
    thread.stack.problem = fmt::format(
        "it runs, and cannot be stopped: process {} traces it already", process_of(tracer));
  } else if (!options_.allow_stop) {
    thread.stack.problem =
        attempt == Attempt::kRunning
            ? "it is running, and stopping threads is forbidden (--no-stop)"
            : "it ran during every snapshot, and stopping threads is forbidden (--no-stop)";
  } else if (thread.stack.problem.empty()) {
    thread.stack.problem = "it ran during every snapshot";
  }
  return thread;
}

}  // namespace ddpdoctor::stacks
