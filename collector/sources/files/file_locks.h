// SPDX-License-Identifier: Apache-2.0
// /proc/locks: the owners of locks on files, and the waiters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace ddpdoctor::sources {

/// One line of /proc/locks.
struct FileLock {
  std::int64_t number = 0;  // a waiter has the number of the awaited lock
  bool waits = false;
  std::string type;  // "flock", "posix", "ofd", "lease"
  std::string mode;  // "read", "write"
  pid_t pid = 0;     // the process that took it; ≤ 0: unknown (ofd, another pid namespace)
  unsigned major = 0;
  unsigned minor = 0;
  std::uint64_t inode = 0;
};

/// Skips malformed lines.
std::vector<FileLock> parse_locks(std::string_view text);
std::vector<FileLock> read_locks();

/// The lock that `waiter` waits for; nullptr if its owner is not listed.
const FileLock* held_against(const std::vector<FileLock>& locks, const FileLock& waiter);

}  // namespace ddpdoctor::sources
