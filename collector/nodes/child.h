// SPDX-License-Identifier: Apache-2.0
// A program with pipes on its three streams, in its own session: it cannot prompt for a password,
// and it ends when we do.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ddpdoctor::nodes {

class Child {
 public:
  /// Fails if the program cannot be started.
  static base::Result<Child> start(const std::vector<std::string>& command);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  /// Ends it by force.
  ~Child();

  [[nodiscard]] int output() const {
    return output_.get();
  }
  [[nodiscard]] int errors() const {
    return errors_.get();
  }
  void close_output() {
    output_.reset();
  }
  void close_errors() {
    errors_.reset();
  }
  /// Never blocks; returns how much was written, less than all if the program does not read.
  std::size_t write(std::string_view text) const;
  void close_input() {
    input_.reset();
  }
  /// The wait status once it has ended.
  std::optional<int> ended();
  /// Sends a signal to the program and the processes it started.
  void signal(int number) const;

 private:
  Child(pid_t pid, base::UniqueFd input, base::UniqueFd output, base::UniqueFd errors);

  pid_t pid_ = 0;
  std::optional<int> status_;
  base::UniqueFd input_;
  base::UniqueFd output_;
  base::UniqueFd errors_;
};

/// The result of a finished program.
struct Finished {
  int status = -1;  // exit status, or 128 + signal
  std::string output;
  std::string errors;
};

/// Runs a program with empty input until it ends. Fails if it cannot be started or does not end in
/// time.
base::Result<Finished> run_program(const std::vector<std::string>& command,
                                   std::chrono::milliseconds limit);

/// The exit status, or 128 + signal.
int status_of(int wait_status);

/// The last non-empty line, made printable; empty = none.
std::string last_line(std::string_view text);

}  // namespace ddpdoctor::nodes
