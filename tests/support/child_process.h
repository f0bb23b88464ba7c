// SPDX-License-Identifier: Apache-2.0
// A program that a test observes: it writes to stdout and ends when its stdin is closed.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace ddpdoctor::test {

/// Owns the process: the destructor closes its stdin, waits, and kills it (by pid) if it does not
/// end.
class ChildProcess {
 public:
  /// Finds argv[0] on PATH; stderr is the test's own unless `quiet`.
  explicit ChildProcess(const std::vector<std::string>& argv, bool quiet = false);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ChildProcess(ChildProcess&&) = delete;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const {
    return pid_;
  }

  /// The next line without its newline; nothing at the end of output or after the deadline.
  std::optional<std::string> line(std::chrono::milliseconds deadline = std::chrono::seconds(60));

  /// Lines before `last`; nothing if `last` never appears.
  std::optional<std::vector<std::string>> lines_until(const std::string& last);

  /// Waits until the process is idle: all its threads sleep, one of them in this system call. The
  /// process prints "ready" shortly before it blocks. False after a minute.
  [[nodiscard]] bool rests_in(long system_call) const;

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string buffer_;
};

/// Everything a command prints; nothing if it fails or cannot be started.
std::optional<std::string> output_of(const std::vector<std::string>& argv);

/// A CPython on this machine.
struct PythonInstallation {
  std::string command;  // the command to start it
  int minor = 0;        // the N of 3.N
};

/// True if all threads of a process sleep, one of them in this system call.
bool rests_in(pid_t pid, long system_call);

/// Polls until `holds` returns true; false after a minute.
bool eventually(const std::function<bool()>& holds);

/// All CPythons 3.`minor` found: in $DDPDOCTOR_TEST_PYTHONS (commands, colon-separated), python3.N
/// on PATH, pyenv's versions; each executable once.
std::vector<PythonInstallation> python_installations(int minor);

}  // namespace ddpdoctor::test
