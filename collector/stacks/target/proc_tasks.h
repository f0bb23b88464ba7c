// SPDX-License-Identifier: Apache-2.0
// /proc/PID/task: the threads of a process and the kernel's data about each. The folder is opened
// once, so another process that reuses the pid cannot be mixed in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "collector/stacks/native/cfi_expression.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::stacks {

/// The content of /proc/PID/task/TID/syscall.
struct BlockedState {
  bool running = false;            // on a CPU or runnable: nothing else is known
  std::optional<Syscall> syscall;  // nothing if it sleeps outside a system call (a page fault)
  // Stack pointer, program counter and the registers of the system call's arguments.
  Registers registers;
};

/// Name and state of a thread from its stat file.
struct ThreadName {
  std::string name;
  char state = '?';
};

/// The threads of one process.
class ProcTasks {
 public:
  static base::Result<ProcTasks> open(pid_t pid);

  [[nodiscard]] pid_t pid() const {
    return pid_;
  }
  /// Sorted; empty if the process has exited.
  [[nodiscard]] std::vector<pid_t> tids() const;
  [[nodiscard]] base::Result<std::string> read(pid_t tid, const char* file) const;

  [[nodiscard]] std::optional<ThreadName> name(pid_t tid) const;
  /// The kernel function it sleeps in; empty if there is none or it is hidden.
  [[nodiscard]] std::string wchan(pid_t tid) const;
  /// How often the thread has been on a CPU. Equal before and after = it has not run in between.
  [[nodiscard]] std::optional<std::uint64_t> run_count(pid_t tid) const;
  /// From now on, `run_count` leaves out `runs` more: a stop of ours caused them.
  static void leave_out_runs(pid_t tid, std::uint64_t runs);
  [[nodiscard]] base::Result<BlockedState> blocked(pid_t tid) const;
  /// The tid in the process's own pid namespace.
  [[nodiscard]] pid_t inner_tid(pid_t tid) const;
  /// Pid of a debugger attached to the thread; 0 = none.
  [[nodiscard]] pid_t tracer(pid_t tid) const;

 private:
  ProcTasks(pid_t pid, base::UniqueFd folder) : pid_(pid), folder_(std::move(folder)) {}

  [[nodiscard]] std::optional<std::uint64_t> read_run_count(pid_t tid) const;

  pid_t pid_;
  base::UniqueFd folder_;
  bool namespaced_ = false;
};

/// Parses the content of a syscall file: "running", "NUMBER ARGUMENTS(6) SP PC" or "-1 SP PC".
std::optional<BlockedState> parse_blocked(std::string_view text);

/// Parses the content of a stat file; the name may contain blanks and parentheses.
std::optional<ThreadName> parse_stat(std::string_view text);

}  // namespace ddpdoctor::stacks
