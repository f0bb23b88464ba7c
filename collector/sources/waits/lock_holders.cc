// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/waits/lock_holders.h"

#include <algorithm>
#include <fcntl.h>

#include <fmt/format.h>
#include <sys/syscall.h>

#include "base/text.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

namespace {

/// The waiter's line in /proc/locks. Locks of open files (F_OFD_SETLKW) have no pid there and are
/// found by inode.
const FileLock* waiting_lock(WaitContext& context, pid_t pid, int fd) {
  const auto text = read_file(fmt::format("/proc/{}/fdinfo/{}", pid, fd));
  const auto inode =
      text ? number<std::uint64_t>(status_field(*text, "ino").value_or("")) : std::nullopt;
  const auto& locks = context.file_locks();
  const auto found = std::find_if(locks.begin(), locks.end(), [&](const FileLock& lock) {
    const bool file = !inode || *inode == lock.inode;
    return lock.waits && file && (lock.pid == pid || (lock.pid <= 0 && inode));
  });
  return found == locks.end() ? nullptr : &*found;
}

/// fdinfo lists a lock under the descriptors of the open file that has it: "lock:\t1: FLOCK …".
bool has_locked(const Holder& holder, const FileLock& held) {
  constexpr std::string_view kLock = "lock:";
  const auto text = read_file(fmt::format("/proc/{}/fdinfo/{}", holder.pid, holder.fd));
  for (std::string_view line : base::split(text.value_or(""), '\n')) {
    if (!line.starts_with(kLock)) {
      continue;
    }
    const auto locks = parse_locks(line.substr(kLock.size()));
    if (!locks.empty() && locks.front().type == held.type && locks.front().inode == held.inode) {
      return true;
    }
  }
  return false;
}

}  // namespace

pid_t heir_of(WaitContext& context, const std::string& path, const FileLock& held) {
  pid_t heir = 0;
  for (const Holder& holder : context.descriptors().holders(path)) {
    if (!has_locked(holder, held)) {
      continue;
    }
    if (holder.pid == held.pid) {
      return 0;
    }
    heir = heir == 0 ? holder.pid : heir;
  }
  return heir;
}

bool waits_for_file_lock(const WaitingThread& waiting) {
  constexpr std::uint64_t kOpenFileLockWait = 38;  // F_OFD_SETLKW
  const auto& call = waiting.thread.syscall;
  return call && (call->number == SYS_flock ||
                  (call->number == SYS_fcntl &&
                   (call->arguments[1] == F_SETLKW || call->arguments[1] == kOpenFileLockWait)));
}

std::optional<AwaitedFileLock> awaited_file_lock(WaitContext& context,
                                                 const WaitingThread& waiting) {
  if (!waits_for_file_lock(waiting)) {
    return std::nullopt;
  }
  const pid_t pid = waiting.process.row.pid;
  const int fd = static_cast<int>(waiting.thread.syscall->arguments[0]);
  AwaitedFileLock lock;
  if (const auto open = descriptor(pid, fd)) {
    lock.path = open->link;
  }
  const FileLock* waits = waiting_lock(context, pid, fd);
  if (waits == nullptr) {
    return lock;
  }
  lock.type = waits->type;
  lock.major = waits->major;
  lock.minor = waits->minor;
  lock.inode = waits->inode;
  const FileLock* held = held_against(context.file_locks(), *waits);
  lock.taker = held == nullptr || held->pid <= 0 ? 0 : held->pid;
  const auto row = lock.taker == 0 ? std::nullopt : read_process(lock.taker);
  lock.taker_lives = row.has_value();
  lock.heir = held == nullptr ? 0 : heir_of(context, lock.path, *held);
  return lock;
}

bool is_below(const JobTree& job, pid_t process, pid_t above) {
  constexpr int kDeepest = 64;
  for (int i = 0; i < kDeepest && process > 0; ++i) {
    if (process == above) {
      return true;
    }
    const JobProcess* known = job.find(process);
    process = known == nullptr ? 0 : known->row.ppid;
  }
  return false;
}

}  // namespace ddpdoctor::sources
