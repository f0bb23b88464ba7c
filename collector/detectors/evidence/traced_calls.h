// SPDX-License-Identifier: Apache-2.0
// What `strace` printed in a log: the system call that a process did not return from.
#pragma once

#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

struct TracedCall {
  pid_t pid = 0;
  std::string name;       // "wait4"
  std::string arguments;  // as far as they were printed
  std::string line;       // the line, without the prefix with the pid

  /// The first argument as a number; -1 if it is none.
  [[nodiscard]] int first_number() const;
};

/// The last call of each traced process, if it had not returned when strace was stopped. Sessions
/// ("strace -p 7", "Process 7 attached") and lines of `strace -f` ("[pid 7] read(3, ") are read.
std::vector<TracedCall> unfinished_calls(const model::JobModel& job);

/// Waits for the exit of process `child`.
bool waits_for_exit_of(const TracedCall& call, pid_t child);

}  // namespace ddpdoctor::detectors
