// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/files/file_locks.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

namespace {

std::string lock_type(std::string_view name) {
  if (name == "FLOCK") {
    return "flock";
  }
  if (name == "POSIX") {
    return "posix";
  }
  if (name == "OFDLCK") {
    return "ofd";
  }
  return name == "LEASE" || name == "DELEG" ? "lease" : "other";
}

// "1: POSIX  ADVISORY  WRITE 3568 08:02:1834 0 EOF", waiters "1: -> POSIX …"
std::optional<FileLock> parse_line(std::string_view line) {
  auto fields = words(line);
  if (fields.size() < 2 || !fields[0].ends_with(':')) {
    return std::nullopt;
  }
  FileLock lock;
  const auto number_field = number<std::int64_t>(fields[0].substr(0, fields[0].size() - 1));
  lock.waits = fields[1] == "->";
  fields.erase(fields.begin(), fields.begin() + (lock.waits ? 2 : 1));
  constexpr std::size_t kFile = 4;
  if (!number_field || fields.size() <= kFile) {
    return std::nullopt;
  }
  lock.number = *number_field;
  lock.type = lock_type(fields[0]);
  lock.mode = fields[2] == "WRITE" || fields[2] == "RW" ? "write" : "read";
  lock.pid = number<pid_t>(fields[3]).value_or(0);
  const auto file = base::split(fields[kFile], ':');
  constexpr int kHex = 16;
  const auto inode = file.size() == 3 ? number<std::uint64_t>(file[2]) : std::nullopt;
  if (!inode) {
    return std::nullopt;
  }
  lock.major = number<unsigned>(file[0], kHex).value_or(0);
  lock.minor = number<unsigned>(file[1], kHex).value_or(0);
  lock.inode = *inode;
  return lock;
}

}  // namespace

std::vector<FileLock> parse_locks(std::string_view text) {
  std::vector<FileLock> locks;
  for (const std::string_view line : base::split(text, '\n')) {
    if (auto lock = parse_line(line)) {
      locks.push_back(std::move(*lock));
    }
  }
  return locks;
}

std::vector<FileLock> read_locks() {
  return parse_locks(read_file("/proc/locks", kLargeFile).value_or(""));
}

const FileLock* held_against(const std::vector<FileLock>& locks, const FileLock& waiter) {
  const auto found = std::find_if(locks.begin(), locks.end(), [&waiter](const FileLock& lock) {
    return !lock.waits && lock.number == waiter.number && lock.inode == waiter.inode;
  });
  return found == locks.end() ? nullptr : &*found;
}

}  // namespace ddpdoctor::sources
