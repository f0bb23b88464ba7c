// SPDX-License-Identifier: Apache-2.0
// The processes below one pid, and how to end them at the owner's request: by pid, with SIGTERM
// before SIGKILL.
#pragma once

#include <chrono>
#include <vector>

#include <sys/types.h>

namespace ddpdoctor::monitor {

/// All running descendants of `root`, children before grandchildren, without `root`.
std::vector<pid_t> descendants(pid_t root);

/// Excludes one of our own programs, and everything below it, from all lists of descendants from
/// now on. It can be our child if we are the first process of a container.
void leave_out(pid_t pid);
bool is_left_out(pid_t pid);

/// Sends SIGTERM to every descendant of this process, waits up to `grace`, then sends SIGKILL until
/// none is left. Reaps its own children.
void end_descendants(std::chrono::milliseconds grace);

}  // namespace ddpdoctor::monitor
