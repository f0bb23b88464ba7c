// SPDX-License-Identifier: Apache-2.0
// File locks that a thread waits for, and their owners: /proc/locks lists waiter and owner under
// one number.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "collector/sources/files/file_locks.h"
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
  pid_t heir = 0;  // the taker has closed the locked file, and this process has it open; 0 = none
};

/// The thread sleeps in flock, or in fcntl with F_SETLKW.
bool waits_for_file_lock(const WaitingThread& waiting);

/// Nothing for a thread that does not wait for a file lock.
std::optional<AwaitedFileLock> awaited_file_lock(WaitContext& context,
                                                 const WaitingThread& waiting);

/// A process of the job with the locked open file, if the process that took the lock has closed it:
/// a forked child shares the open file, and with it a flock. 0 = none.
pid_t heir_of(WaitContext& context, const std::string& path, const FileLock& held);

/// The process is `above` or is below it.
bool is_below(const JobTree& job, pid_t process, pid_t above);

}  // namespace ddpdoctor::sources
