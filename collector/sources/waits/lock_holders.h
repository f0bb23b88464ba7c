// SPDX-License-Identifier: Apache-2.0
// Locks on files that a thread waits for, and who took them: the kernel lists waiter and holder
// under one number in /proc/locks.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "collector/sources/waits/context.h"

namespace ddpdoctor::sources {

/// A lock that a thread waits for.
struct AwaitedFileLock {
  std::string path;  // empty = the descriptor could not be read
  std::string type;  // "flock", "posix", "ofd"; empty = the kernel lists no waiter
  unsigned major = 0;
  unsigned minor = 0;
  std::uint64_t inode = 0;
  pid_t taker = 0;  // who took it; 0 = unknown
  bool taker_lives = false;
};

/// The thread sleeps in flock, or in fcntl with F_SETLKW.
bool waits_for_file_lock(const WaitingThread& waiting);

/// Nothing for a thread that waits for no lock on a file.
std::optional<AwaitedFileLock> awaited_file_lock(WaitContext& context,
                                                 const WaitingThread& waiting);

/// The process is `above` or stands below it.
bool is_below(const JobTree& job, pid_t process, pid_t above);

}  // namespace ddpdoctor::sources
