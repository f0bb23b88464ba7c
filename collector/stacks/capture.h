// SPDX-License-Identifier: Apache-2.0
// The door of this folder: stacks of many processes, symbols shared between them, nobody stopped
// who sleeps.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <vector>

#include "collector/stacks/stack.h"

namespace ddpdoctor::stacks {

struct PythonVisit;
/// Reads what it likes of a process while its interpreter is at hand (python_visit.h).
using PythonVisitor = std::function<void(PythonVisit&)>;

struct CaptureOptions {
  bool allow_stop = true;   // --no-stop forbids stopping a running thread
  bool native = true;       // native frames and their names
  bool torch_state = true;  // groups, call arguments, flight recorder
  bool glance = false;      // main threads only; of a running one the Python frames that stay
  std::chrono::milliseconds process_deadline{2000};
  PythonVisitor visitor{};  // asked once for each process with Python
};

/// Stacks of `pids`, in that order; a process that cannot be read comes back with `problems`.
/// Files shared by the processes (libtorch) are opened and searched once.
std::vector<ProcessStacks> capture(std::span<const pid_t> pids, const CaptureOptions& options);

/// Times each thread has been on CPU: (tid, count). Unchanged = its stack is unchanged.
std::vector<std::pair<pid_t, std::uint64_t>> run_counts(pid_t pid);

}  // namespace ddpdoctor::stacks
