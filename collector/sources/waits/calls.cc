// SPDX-License-Identifier: Apache-2.0
// The meaning of a system call's number and arguments. Arguments are the thread's registers; what
// they point to is read from its memory and accepted only if it is plausible.
#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/text.h"
#include "collector/sources/files/mounts.h"
#include "collector/sources/processes/proc_file.h"
#include "collector/sources/waits/context.h"
#include "collector/sources/waits/lock_holders.h"

namespace ddpdoctor::sources {

namespace {

/// A call's number and arguments in the types of the system call.
struct Call {
  std::int64_t number = -1;
  std::array<std::uint64_t, 6> arguments{};

  [[nodiscard]] int fd() const {
    return static_cast<int>(arguments[0]);
  }
  [[nodiscard]] pid_t pid(std::size_t index) const {
    return static_cast<pid_t>(arguments.at(index));
  }
};

#ifdef SYS_poll
constexpr std::array kEpollWaits{SYS_epoll_wait, SYS_epoll_pwait};
constexpr std::array kOpens{SYS_open,       SYS_openat, SYS_stat, SYS_lstat,
                            SYS_newfstatat, SYS_access, SYS_statx};
constexpr std::array kPathFirst{SYS_open, SYS_stat, SYS_lstat, SYS_access};
constexpr std::array kForks{SYS_vfork, SYS_clone, SYS_clone3};
#else
constexpr std::array kEpollWaits{SYS_epoll_pwait};
constexpr std::array kOpens{SYS_openat, SYS_newfstatat, SYS_statx};
constexpr std::array<int, 0> kPathFirst{};
constexpr std::array kForks{SYS_clone, SYS_clone3};
#endif

std::vector<pid_t> children_of(const WaitContext& context, pid_t parent) {
  std::vector<pid_t> children;
  for (const JobProcess& process : context.job().processes) {
    if (process.row.ppid == parent) {
      children.push_back(process.row.pid);
    }
  }
  return children;
}

WaitTarget process_target(const WaitContext& context, pid_t pid) {
  return WaitTarget{.kind = "process",
                    .target = fmt::format("pid:{}", pid),
                    .detail = "waits for the end of " + context.describe(pid)};
}

/// The children that may end the wait; several children are not a single target.
WaitTarget children_target(const WaitContext& context, const std::vector<pid_t>& children) {
  if (children.size() == 1) {
    return process_target(context, children.front());
  }
  WaitTarget target{.kind = "process",
                    .target = {},
                    .detail = children.empty() ? "waits for a child, of which none is known"
                                               : "waits for any of its children: "};
  for (std::size_t i = 0; i < children.size(); ++i) {
    target.detail += (i == 0 ? "" : ", ") + context.describe(children[i]);
  }
  return target;
}

WaitTarget child_wait(const WaitContext& context, const JobProcess& process, pid_t inner) {
  if (inner > 0) {
    const pid_t pid = context.outer_pid(process.row, inner);
    return pid > 0 ? process_target(context, pid)
                   : WaitTarget{.kind = "process",
                                .target = {},
                                .detail = fmt::format(
                                    "waits for the end of process {} of its container", inner)};
  }
  return children_target(context, children_of(context, process.row.pid));
}

std::optional<WaitTarget> waitid_wait(WaitContext& context, const WaitingThread& waiting,
                                      const Call& call) {
  switch (static_cast<idtype_t>(call.arguments[0])) {
    case P_PID:
      return child_wait(context, waiting.process, call.pid(1));
    case P_PIDFD:
      return descriptor_wait(context, waiting.process, static_cast<int>(call.arguments[1]),
                             Direction::kRead);
    case P_ALL:
    case P_PGID:
      break;
  }
  return child_wait(context, waiting.process, -1);
}

/// Both ends of a pipe are in one process: an event loop wakes itself this way.
bool wakes_itself(WaitContext& context, pid_t pid, int fd) {
  const auto open = descriptor(pid, fd);
  // Asyncio's: both ends belong to the process.
  if (open && open->kind == DescriptorKind::kSocket) {
    const auto& peers = context.unix_sockets();
    const auto peer = peers.find(open->inode);
    const auto& ends = context.descriptors().holders(
        fmt::format("socket:[{}]", peer == peers.end() ? 0 : peer->second));
    return !ends.empty() && std::all_of(ends.begin(), ends.end(),
                                        [pid](const Holder& end) { return end.pid == pid; });
  }
  if (!open || open->kind != DescriptorKind::kPipe) {
    return false;
  }
  const auto& holders = context.descriptors().holders(open->link);
  return std::count_if(holders.begin(), holders.end(),
                       [pid](const Holder& holder) { return holder.pid == pid; }) > 1;
}

std::optional<WaitTarget> epoll_wait_target(WaitContext& context, const WaitingThread& waiting,
                                            const Call& call) {
  const std::string text =
      read_file(fmt::format("/proc/{}/fdinfo/{}", waiting.process.row.pid, call.fd())).value_or("");
  std::vector<WaitTarget> targets;
  for (const std::string_view line : base::split(text, '\n')) {
    const auto fields = words(line);  // "tfd:        7 events:       19 data: …"
    const auto fd =
        fields.size() > 1 && fields[0] == "tfd:" ? number<int>(fields[1]) : std::nullopt;
    const bool wanted =
        fd && targets.size() < kMostPolled && !wakes_itself(context, waiting.process.row.pid, *fd);
    auto target =
        wanted ? descriptor_wait(context, waiting.process, *fd, Direction::kRead) : std::nullopt;
    if (target) {
      targets.push_back(std::move(*target));
    }
  }
  return any_of(std::move(targets));
}

/// The same file as "~/path" in the process, as a path from here.
std::string seen_from_here(pid_t pid, const std::string& path) {
  return path.starts_with('/') ? fmt::format("/proc/{}/root{}", pid, path)
                               : fmt::format("/proc/{}/cwd/{}", pid, path);
}

std::string full_path(pid_t pid, const std::string& path) {
  return path.starts_with('/')
             ? path
             : fmt::format("{}/{}", read_link(proc_path(pid, "cwd")).value_or(""), path);
}

/// open() of a FIFO waits for the other end; any other slow call with a path waits for its file
/// system.
std::optional<WaitTarget> path_wait(WaitContext& context, const WaitingThread& waiting,
                                    const Call& call) {
  const pid_t pid = waiting.process.row.pid;
  const std::size_t argument = is_one_of(call.number, kPathFirst) ? 0 : 1;
  constexpr std::size_t kLongestPath = 4096;
  const auto path = context.memory(pid).c_string(call.arguments.at(argument), kLongestPath);
  if (!path || path->empty()) {
    return std::nullopt;
  }
  const std::string full = full_path(pid, *path);
  const auto mount = mount_of_path(mounts_of(pid), full);
  const bool remote = mount && mount->remote();
  struct stat found{};
  if (!remote && ::lstat(seen_from_here(pid, *path).c_str(), &found) == 0 &&
      S_ISFIFO(found.st_mode)) {
    return WaitTarget{.kind = "fifo",
                      .target = "file:" + full,
                      .detail = fmt::format("opens {}; no process has the other end open",
                                            base::printable(full))};
  }
  const std::string where =
      remote ? fmt::format(", on {} mounted at {}", mount->type, base::printable(mount->path))
             : std::string();
  return WaitTarget{
      .kind = "file", .target = "file:" + full, .detail = base::printable(full) + where};
}

/// The only other process that has the same file open: the heir of a lock whose taker has exited or
/// is unknown.
pid_t only_other_holder(WaitContext& context, const std::string& path, pid_t self) {
  pid_t found = 0;
  const bool in_job = context.descriptors().holders(path).size() > 1;
  for (const Holder& holder : in_job ? context.descriptors().holders(path)
                                     : context.descriptors().holders_anywhere(path)) {
    if (holder.pid != self && found != 0 && holder.pid != found) {
      return 0;
    }
    found = holder.pid == self ? found : holder.pid;
  }
  return found;
}

/// A wait in flock or fcntl.
WaitTarget file_lock_wait(WaitContext& context, const WaitingThread& waiting,
                          const AwaitedFileLock& lock) {
  WaitTarget target{.kind = "file-lock",
                    .target = lock.path.empty() ? std::string() : "file:" + lock.path,
                    .detail = base::printable(lock.path)};
  const pid_t holder = lock.taker_lives
                           ? lock.taker
                           : only_other_holder(context, lock.path, waiting.process.row.pid);
  if (lock.taker > 0 && !lock.taker_lives) {
    target.detail += fmt::format(", taken by pid {}, which has ended", lock.taker);
  }
  if (lock.heir > 0) {
    target.target = fmt::format("pid:{}", lock.heir);
    target.detail += ", held by " + context.describe(lock.heir);
    target.detail += lock.taker > 0 ? ", forked under the lock by " + context.describe(lock.taker)
                                    : std::string();
  } else if (holder > 0) {
    target.target = fmt::format("pid:{}", holder);
    target.detail +=
        fmt::format(", {} {}", lock.taker_lives ? "held by" : "open in", context.describe(holder));
  }
  return target;
}

/// The parent of a vfork sleeps until the child calls exec or exits: the youngest child.
std::optional<WaitTarget> fork_wait(const WaitContext& context, const WaitingThread& waiting) {
  const auto children = children_of(context, waiting.process.row.pid);
  if (children.empty()) {
    return std::nullopt;
  }
  auto target = process_target(context, children.back());
  target.detail = "started it with vfork or posix_spawn and waits until it execs: " +
                  context.describe(children.back());
  return target;
}

}  // namespace

std::optional<WaitTarget> call_wait(WaitContext& context, const WaitingThread& waiting) {
  if (!waiting.thread.syscall || waiting.thread.syscall->number < 0) {
    return std::nullopt;
  }
  const Call call{.number = waiting.thread.syscall->number,
                  .arguments = waiting.thread.syscall->arguments};
  if (call.number == SYS_wait4) {
    return child_wait(context, waiting.process, call.pid(0));
  }
  if (call.number == SYS_waitid) {
    return waitid_wait(context, waiting, call);
  }
  if (const auto lock = awaited_file_lock(context, waiting)) {
    return file_lock_wait(context, waiting, *lock);
  }
  if (call.number == SYS_accept || call.number == SYS_accept4) {
    return WaitTarget{.kind = "socket",
                      .target = {},
                      .detail = fmt::format("waits for a connection to fd {}", call.fd())};
  }
  if (is_one_of(call.number, kEpollWaits)) {
    // Event loops (gloo's, the store's) wait for events, not for a process: only the main thread of
    // a program counts.
    const bool main = waiting.thread.tid == waiting.process.row.pid;
    return !main ? std::nullopt : epoll_wait_target(context, waiting, call);
  }
  if (is_one_of(call.number, kOpens)) {
    return path_wait(context, waiting, call);
  }
  if (is_one_of(call.number, kForks)) {
    return fork_wait(context, waiting);
  }
  std::vector<WaitTarget> targets;
  for (const AwaitedDescriptor& awaited : awaited_descriptors(context, waiting)) {
    if (auto target = descriptor_wait(context, waiting.process, awaited.fd, awaited.direction)) {
      targets.push_back(std::move(*target));
    }
  }
  return any_of(std::move(targets));
}

}  // namespace ddpdoctor::sources
