// SPDX-License-Identifier: Apache-2.0
// A program a test looks at: it talks on stdout and ends when its stdin closes.
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

  /// The next line without its end; nothing at the end of output or when the deadline is over.
  std::optional<std::string> line(std::chrono::milliseconds deadline = std::chrono::seconds(60));

  /// Lines up to and without `last`; nothing when it never comes.
  std::optional<std::vector<std::string>> lines_until(const std::string& last);

  /// Waits until nothing in the process moves: all its threads sleep, one of them in this system
  /// call. What it says before it blocks ("ready") comes a little early. False after a minute.
  [[nodiscard]] bool rests_in(long system_call) const;

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string buffer_;
};

/// Everything a command prints; nothing when it fails or cannot be started.
std::optional<std::string> output_of(const std::vector<std::string>& argv);

/// A CPython on this machine.
struct PythonInstallation {
  std::string command;  // what to start
  int minor = 0;        // N of 3.N
};

/// Whether all threads of a process sleep, one of them in this system call.
bool rests_in(pid_t pid, long system_call);

/// Polls until `holds` or a minute is over.
bool eventually(const std::function<bool()>& holds);

/// CPythons 3.`minor` found: among $DDPDOCTOR_TEST_PYTHONS (commands, colon-separated), python3.N
/// on PATH, pyenv's versions; each executable once.
std::vector<PythonInstallation> python_installations(int minor);

}  // namespace ddpdoctor::test
