// SPDX-License-Identifier: Apache-2.0
// The public interface of this folder: stacks of many processes, with symbols shared between them;
// sleeping threads are not stopped.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <vector>

#include "collector/stacks/stack.h"

namespace ddpdoctor::stacks {

class MapsTable;
struct PythonVisit;
/// Reads data of a process while its interpreter is accessible (python_visit.h).
using PythonVisitor = std::function<void(PythonVisit&)>;

struct CaptureOptions {
  bool allow_stop = true;   // false: --no-stop forbids stopping a running thread
  bool native = true;       // native frames and their names
  bool torch_state = true;  // groups, call arguments, flight recorder
  // Main threads only; for a running one, the Python frames that do not change.
  bool glance = false;
  std::chrono::milliseconds process_deadline{2000};
  std::chrono::milliseconds halt_deadline{100};  // how long a running thread may take to stop
  PythonVisitor visitor{};                       // called once for each process with Python
  MapsTable* maps = nullptr;                     // gets the maps of the processes that were read
};

/// The stacks of `pids`, in that order; an unreadable process has `problems`. Files that processes
/// share (libtorch) are opened and searched once.
std::vector<ProcessStacks> capture(std::span<const pid_t> pids, const CaptureOptions& options);

/// How often each thread has run on a CPU: (tid, count). An unchanged count means an unchanged
/// stack.
std::vector<std::pair<pid_t, std::uint64_t>> run_counts(pid_t pid);

}  // namespace ddpdoctor::stacks
