// SPDX-License-Identifier: Apache-2.0
// File locks that a thread waits for, and their owners: /proc/locks lists waiter and owner under
// one number.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "collector/sources/waits/context.h"

namespace ddpdoctor::sources {

/// A lock that a thread waits for.
struct AwaitedFileLock {
  std::string path;  // empty = the descriptor could not be read
  std::string type;  // "flock", "posix", "ofd"; empty = the kernel lists no such waiter
  unsigned major = 0;
  unsigned minor = 0;
  std::uint64_t inode = 0;
  pid_t taker = 0;  // the process that took it; 0 = unknown
  bool taker_lives = false;
};

/// The thread sleeps in flock, or in fcntl with F_SETLKW.
bool waits_for_file_lock(const WaitingThread& waiting);

/// Nothing for a thread that does not wait for a file lock.
std::optional<AwaitedFileLock> awaited_file_lock(WaitContext& context,
                                                 const WaitingThread& waiting);

/// The process is `above` or is below it.
bool is_below(const JobTree& job, pid_t process, pid_t above);

}  // namespace ddpdoctor::sources
