// SPDX-License-Identifier: Apache-2.0
// One thread at one instant, by the first method that works: without stopping it, verified by an
// unchanged run count; else stopped for microseconds; else not at all, with the reason. Never stops
// the whole process.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "collector/stacks/capture.h"
#include "collector/stacks/native/native_unwind.h"
#include "collector/stacks/python/reader.h"
#include "collector/stacks/target/live_target.h"
#include "collector/stacks/target/proc_tasks.h"
#include "collector/stacks/target/stack_copy.h"

namespace ddpdoctor::stacks {

/// A captured thread before names are resolved.
struct CapturedThread {
  ThreadStack stack;  // everything but frames
  Unwound native;
  RemoteAddress stack_pointer = 0;
  RemoteAddress call_site = 0;  // program counter in `stack.syscall`
  bool has_python_state = false;
  RawPythonStack python;
  RemoteAddress handles = 0;  // an exception object that is described later
  std::optional<pid_t>
      mutex_word_owner;  // the owner field, if the awaited futex is in a pthread mutex
};

/// Captures the threads of one process.
class ThreadCapture {
 public:
  ThreadCapture(LiveTarget& target, const ProcTasks& tasks, PythonReader* python,
                const CaptureOptions& options);

  /// Never fails: `problem` says what could not be read. `python_state` is the address of its
  /// PyThreadState.
  CapturedThread capture(pid_t tid, std::optional<RemoteAddress> python_state);

 private:
  enum class Attempt { kDone, kRunning, kMoved, kFailed };

  Attempt look_without_stop(CapturedThread& thread, std::optional<RemoteAddress> python_state);
  Attempt climb(CapturedThread& thread, std::optional<RemoteAddress> python_state);
  bool look_twice(CapturedThread& thread, std::optional<RemoteAddress> python_state);
  void leave_out_our_stop(const CapturedThread& before, CapturedThread& stopped);
  bool look_stopped(CapturedThread& thread, std::optional<RemoteAddress> python_state);
  void read_python(CapturedThread& thread, std::optional<RemoteAddress> python_state);
  void read_mutex(CapturedThread& thread);
  bool describe(CapturedThread& thread) const;
  [[nodiscard]] bool may_stop(const CapturedThread& thread) const;

  LiveTarget& target_;
  const ProcTasks& tasks_;
  PythonReader* python_;
  const CaptureOptions& options_;
  StackCopy copy_;
};

}  // namespace ddpdoctor::stacks
