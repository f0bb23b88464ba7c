// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/waits/objects.h"

#include <algorithm>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "collector/sources/processes/proc_file.h"
#include "collector/sources/waits/lock_holders.h"
#include "collector/stacks/target/maps.h"

namespace ddpdoctor::sources {

namespace {

bool runs_in(const stacks::ThreadStack& thread, std::string_view part) {
  return std::any_of(thread.frames.begin(), thread.frames.end(),
                     [part](const stacks::Frame& frame) {
                       return frame.language == stacks::Language::kNative &&
                              frame.function.find(part) != std::string::npos;
                     });
}

/// The byte of a file at an address; nothing for anonymous memory.
std::optional<MappedByte> in_file(const stacks::Maps& maps, std::uint64_t address) {
  const stacks::Mapping* there = maps.find(address);
  if (there == nullptr || there->inode == 0) {
    return std::nullopt;
  }
  return MappedByte{.device = there->device,
                    .inode = there->inode,
                    .offset = there->offset + (address - there->start)};
}

/// glibc's sem_t on 64 bits: the count, with the number of waiters above it. glibc sleeps at the
/// address of the count.
void read_semaphore(WaitContext& context, pid_t pid, std::uint64_t address, ObjectWait& wait) {
  constexpr unsigned kWaitersShift = 32;
  auto& memory = context.memory(pid);
  memory.forget();
  if (const auto word = memory.get<std::uint64_t>(address)) {
    wait.ready = (*word & 0xFFFFFFFFU) != 0;
    wait.waiters = static_cast<std::int64_t>(*word >> kWaitersShift);
  }
}

std::optional<ObjectWait> futex_wait_of(WaitContext& context, const WaitingThread& waiting) {
  const auto& arguments = waiting.thread.syscall->arguments;
  const auto operation = static_cast<std::uint32_t>(arguments[1]);
  const std::uint32_t command = operation & static_cast<std::uint32_t>(FUTEX_CMD_MASK);
  const pid_t pid = waiting.process.row.pid;
  if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) {
    return std::nullopt;
  }
  const std::uint64_t address = arguments[0];
  std::optional<MappedByte> file;
  if ((operation & FUTEX_PRIVATE_FLAG) == 0) {
    file = in_file(context.maps(pid), address);
  }
  if (!file) {
    return ObjectWait{.kind = "lock",
                      .object = fmt::format("lock:{}+{:x}", pid, address),
                      .operation = "acquire",
                      .enders = {pid}};
  }
  const bool semaphore = runs_in(waiting.thread, "SemLock_acquire");
  constexpr unsigned kMajorShift = 32;
  ObjectWait wait{.kind = semaphore ? "semaphore" : "futex",
                  .object = fmt::format("{}:{:x}:{:x}:{}+{}", semaphore ? "semaphore" : "futex",
                                        file->device >> kMajorShift, file->device & 0xFFFFFFFFU,
                                        file->inode, file->offset),
                  .operation = "acquire",
                  .enders = context.mappers(*file)};
  if (semaphore) {
    read_semaphore(context, pid, address, wait);
  }
  return wait;
}

ObjectWait end_of_child(pid_t pid) {
  return {.kind = "process",
          .object = fmt::format("process:{}", pid),
          .operation = "join",
          .enders = {pid}};
}

std::optional<ObjectWait> child_wait_of(WaitContext& context, const WaitingThread& waiting) {
  const auto& call = *waiting.thread.syscall;
  const auto which = static_cast<pid_t>(call.arguments[call.number == SYS_wait4 ? 0 : 1]);
  const bool one = call.number == SYS_wait4 || call.arguments[0] == P_PID;
  const pid_t pid = one && which > 0 ? context.outer_pid(waiting.process.row, which) : 0;
  return pid > 0 ? std::optional(end_of_child(pid)) : std::nullopt;
}

std::optional<ObjectWait> lock_on_file(WaitContext& context, const WaitingThread& waiting) {
  const pid_t pid = waiting.process.row.pid;
  const auto lock = awaited_file_lock(context, waiting);
  if (!lock) {
    return std::nullopt;
  }
  ObjectWait wait{.kind = "file-lock",
                  .object = fmt::format("file-lock:{}", lock->path),
                  .operation = "acquire",
                  .enders = {},
                  .name = lock->path};
  if (lock->inode != 0) {
    wait.object = fmt::format("file-lock:{:x}:{:x}:{}", lock->major, lock->minor, lock->inode);
  }
  if (lock->heir > 0) {
    wait.enders = {lock->heir};
  } else if (lock->taker_lives) {
    wait.enders = {lock->taker};
  }
  // Descriptors of one open() share a flock: a fork may release it for its parent.
  if (lock->type != "posix" && lock->heir == 0) {
    for (const Holder& holder : context.descriptors().holders(lock->path)) {
      const bool shares = !lock->taker_lives || is_below(context.job(), holder.pid, lock->taker);
      if (holder.pid != pid && shares) {
        wait.enders.insert(holder.pid);
      }
    }
  }
  wait.open = wait.enders.empty();
  return wait;
}

/// Our own duplicate of another process's descriptor; its state (bytes queued, room) is the
/// original's.
base::UniqueFd copy_of(pid_t pid, int fd) {
  const base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return base::UniqueFd(process ? static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), fd, 0))
                                : -1);
}

void ask_descriptor(pid_t pid, const AwaitedDescriptor& awaited, ObjectWait& wait) {
  const base::UniqueFd copy = copy_of(pid, awaited.fd);
  if (!copy) {
    return;
  }
  const bool reads = awaited.direction == Direction::kRead;
  pollfd state{
      .fd = copy.get(), .events = static_cast<short>(reads ? POLLIN : POLLOUT), .revents = 0};
  wait.ready = ::poll(&state, 1, 0) > 0;
  int bytes = 0;
  if (wait.kind != "socket" && ::ioctl(copy.get(), FIONREAD, &bytes) == 0) {
    wait.queued = bytes;
  } else if (!reads && ::ioctl(copy.get(), TIOCOUTQ, &bytes) == 0) {
    wait.queued = bytes;  // sent but not yet read at the other end
  }
}

std::set<pid_t> holder_pids(const std::vector<Holder>& holders) {
  std::set<pid_t> pids;
  for (const Holder& holder : holders) {
    pids.insert(holder.pid);
  }
  return pids;
}

std::set<pid_t> holders_of(WaitContext& context, const std::string& link) {
  const auto& inside = context.descriptors().holders(link);
  return holder_pids(inside.empty() ? context.descriptors().holders_anywhere(link) : inside);
}

/// The readers of a pipe that we write to, or the writers of one we read; a descriptor with an
/// unknown mode counts.
std::set<pid_t> other_ends_of(WaitContext& context, const std::string& link, Direction direction) {
  const auto fits = [direction](const Holder& holder) {
    const auto mode = open_mode(holder.pid, holder.fd);
    return !mode || (direction == Direction::kRead ? mode->writes : mode->reads);
  };
  const auto fitting = [&](const std::vector<Holder>& holders) {
    std::vector<Holder> found;
    std::copy_if(holders.begin(), holders.end(), std::back_inserter(found), fits);
    return holder_pids(found);
  };
  const auto inside = fitting(context.descriptors().holders(link));
  return inside.empty() ? fitting(context.descriptors().holders_anywhere(link)) : inside;
}

std::uint64_t peer_of_socket(WaitContext& context, pid_t pid, std::uint64_t inode) {
  const TcpTable& table = context.tcp(pid);
  if (const TcpSocket* socket = table.by_inode(inode)) {
    const bool connected = socket->state == TcpState::kEstablished;
    const TcpSocket* peer = connected ? table.peer(*socket) : nullptr;
    return peer == nullptr ? 0 : peer->inode;
  }
  const auto& peers = context.unix_sockets();
  const auto peer = peers.find(inode);
  return peer == peers.end() ? 0 : peer->second;
}

std::optional<ObjectWait> channel_wait(WaitContext& context, const WaitingThread& waiting,
                                       const AwaitedDescriptor& awaited) {
  const pid_t pid = waiting.process.row.pid;
  const auto open = descriptor(pid, awaited.fd);
  if (!open) {
    return std::nullopt;
  }
  ObjectWait wait{.kind = "pipe",
                  .object = open->link,
                  .operation = awaited.direction == Direction::kRead ? "read" : "write",
                  .enders = {}};
  switch (open->kind) {
    case DescriptorKind::kPipe:
      wait.enders = other_ends_of(context, open->link, awaited.direction);
      break;
    case DescriptorKind::kSocket: {
      wait.kind = "socket";
      const std::uint64_t peer = peer_of_socket(context, pid, open->inode);
      wait.open = peer == 0;
      if (peer != 0) {  // one name for both ends
        const auto [low, high] = std::minmax(open->inode, peer);
        wait.object = fmt::format("socket:[{}]-[{}]", low, high);
        wait.enders = holders_of(context, fmt::format("socket:[{}]", peer));
      }
      break;
    }
    case DescriptorKind::kPidFd: {
      const auto text = read_file(fmt::format("/proc/{}/fdinfo/{}", pid, awaited.fd));
      const auto child =
          text ? number<pid_t>(status_field(*text, "Pid").value_or("")) : std::nullopt;
      return child && *child > 0 ? std::optional(end_of_child(*child)) : std::nullopt;
    }
    default:
      wait.kind = "other";
      wait.open = true;  // a terminal, a file or a counter: any process may end the wait
      return wait;
  }
  ask_descriptor(pid, awaited, wait);
  return wait;
}

/// Several channels at once: the first event ends the wait.
std::optional<ObjectWait> any_channel(WaitContext& context, const WaitingThread& waiting) {
  std::optional<ObjectWait> all;
  for (const AwaitedDescriptor& awaited : awaited_descriptors(context, waiting)) {
    auto one = awaited.fd < 0 ? std::nullopt : channel_wait(context, waiting, awaited);
    if (!one) {
      continue;
    }
    if (!all) {
      all = std::move(one);
      continue;
    }
    all->enders.insert(one->enders.begin(), one->enders.end());
    all->open = all->open || one->open;
    all->ready = all->ready || one->ready;
  }
  return all;
}

}  // namespace

std::optional<ObjectWait> object_wait(WaitContext& context, const WaitingThread& waiting) {
  const auto& call = waiting.thread.syscall;
  if (!call || waiting.thread.state == 'R' || waiting.thread.state == 'T' ||
      waiting.thread.state == 'Z') {
    return std::nullopt;
  }
  if (call->number == SYS_futex) {
    return futex_wait_of(context, waiting);
  }
  if (call->number == SYS_wait4 || call->number == SYS_waitid) {
    return child_wait_of(context, waiting);
  }
  if (waits_for_file_lock(waiting)) {
    return lock_on_file(context, waiting);
  }
  return any_channel(context, waiting);
}

}  // namespace ddpdoctor::sources
