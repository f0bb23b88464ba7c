// SPDX-License-Identifier: Apache-2.0
// The processes below one pid, and their end when the owner asked for it: by pid, gently first,
// then hard.
#pragma once

#include <chrono>
#include <vector>

#include <sys/types.h>

namespace ddpdoctor::monitor {

/// All living descendants of `root`, children before grandchildren; `root` itself is not among
/// them.
std::vector<pid_t> descendants(pid_t root);

/// A program of ours beside the job: with what is below it, it is nobody's descendant from now on.
/// It may be our child where we are the first process of a container.
void leave_out(pid_t pid);
bool is_left_out(pid_t pid);

/// Sends SIGTERM to every descendant of this process, waits up to `grace`, then SIGKILL until none
/// is left. Reaps its own children.
void end_descendants(std::chrono::milliseconds grace);

}  // namespace ddpdoctor::monitor
