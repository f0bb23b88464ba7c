// SPDX-License-Identifier: Apache-2.0
// Stops one thread while a function runs. A stop ends epoll_wait, or a recv with a timeout, with
// EINTR in the target, so this is the second method: for running threads that cannot be read
// otherwise.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <sys/types.h>

#include "collector/stacks/native/cfi_expression.h"

namespace ddpdoctor::stacks {

/// The result of a stop.
struct StopOutcome {
  bool stopped = false;     // the function has run
  double milliseconds = 0;  // from stop to release
  std::string problem;      // why it could not be stopped
};

/// Seizes and interrupts thread `tid`, calls `look` with its registers while it is stopped, and
/// releases it. Waits at most `deadline` for the stop. Runs in a short-lived thread of ours,
/// because the kernel releases the threads of a dead tracer, whatever went wrong before. A
/// group-stopped thread stays group-stopped; a signal that arrives meanwhile is passed on.
StopOutcome with_stopped_thread(pid_t tid, std::chrono::milliseconds deadline,
                                const std::function<void(const Registers&)>& look);

}  // namespace ddpdoctor::stacks
