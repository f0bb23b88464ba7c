// SPDX-License-Identifier: Apache-2.0
// Stops one thread for as long as a function runs. A stop ends epoll_wait and a recv with a timeout
// with EINTR in the target, so this is the second rung of the ladder: for threads that run and
// therefore cannot be read otherwise.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <sys/types.h>

#include "collector/stacks/native/cfi_expression.h"

namespace ddpdoctor::stacks {

/// How a stop went.
struct StopOutcome {
  bool stopped = false;     // the function has run
  double milliseconds = 0;  // from the thread's halt to its release
  std::string problem;      // why it could not be stopped
};

/// Seizes and interrupts thread `tid`, runs `look` on its registers while it stands still, lets it
/// go. Waits at most `deadline` for the halt. All of it happens in a short-lived thread of ours:
/// the kernel releases what a dead tracer holds, whatever went wrong before. A group-stopped thread
/// stays group-stopped; a signal that arrives meanwhile is passed on.
StopOutcome with_stopped_thread(pid_t tid, std::chrono::milliseconds deadline,
                                const std::function<void(const Registers&)>& look);

}  // namespace ddpdoctor::stacks
