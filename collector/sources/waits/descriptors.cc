// SPDX-License-Identifier: Apache-2.0
// The process at the other end of a descriptor: the writers of a pipe, the peer of a socket, the
// person at a terminal.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/text.h"
#include "collector/sources/files/mounts.h"
#include "collector/sources/processes/proc_file.h"
#include "collector/sources/waits/context.h"

namespace ddpdoctor::sources {

namespace {

constexpr std::size_t kMostNamed = 8;  // processes or descriptors listed in a detail

std::string list(const WaitContext& context, const std::set<pid_t>& pids) {
  std::string text;
  std::size_t count = 0;
  for (const pid_t pid : pids) {
    if (++count > kMostNamed) {
      return text + fmt::format(" and {} more", pids.size() - kMostNamed);
    }
    text += (text.empty() ? "" : ", ") + context.describe(pid);
  }
  return text;
}

/// Processes among the holders with the end that would wake us. A process with an unknown mode
/// counts.
std::set<pid_t> fitting_ends(const std::vector<Holder>& holders, Direction direction) {
  std::set<pid_t> found;
  for (const Holder& holder : holders) {
    const auto mode = open_mode(holder.pid, holder.fd);
    if (!mode || (direction == Direction::kRead ? mode->writes : mode->reads)) {
      found.insert(holder.pid);
    }
  }
  return found;
}

std::set<pid_t> other_ends(WaitContext& context, const std::string& link, pid_t self,
                           Direction direction) {
  std::set<pid_t> found = fitting_ends(context.descriptors().holders(link), direction);
  if (found.empty()) {  // the channel leads out of the job
    found = fitting_ends(context.descriptors().holders_anywhere(link), direction);
  }
  found.erase(self);
  return found;
}

/// Forks inherit every end, so many processes may hold it. The parent that created a worker is the
/// one that communicates with it.
pid_t likely_end(const JobProcess& self, const std::set<pid_t>& ends) {
  if (ends.size() == 1) {
    return *ends.begin();
  }
  const bool is_child =
      self.role == JobRole::kDataLoaderWorker || self.role == JobRole::kResourceTracker;
  return is_child && ends.contains(self.row.ppid) ? self.row.ppid : 0;
}

WaitTarget channel(WaitContext& context, const JobProcess& self, const Descriptor& descriptor,
                   std::string kind, Direction direction) {
  const std::set<pid_t> ends = other_ends(context, descriptor.link, self.row.pid, direction);
  const pid_t end = likely_end(self, ends);
  const std::string_view verb = direction == Direction::kRead ? "reads" : "writes";
  WaitTarget target{.kind = std::move(kind), .target = {}, .detail = {}};
  if (end != 0) {
    target.target = fmt::format("pid:{}", end);
  } else if (target.kind == "fifo") {
    target.target = "file:" + descriptor.link;
  }
  const std::string others = end != 0 ? context.describe(end) : list(context, ends);
  const std::string held = others.empty() ? "no other process has the other end open"
                                          : "the other end is open in " + others;
  target.detail =
      fmt::format("{} fd {} ({}); {}", verb, descriptor.fd, base::printable(descriptor.link), held);
  return target;
}

/// Forked children share their parent's sockets: the oldest holder is the owner.
pid_t oldest(const WaitContext& context, const std::vector<Holder>& holders, pid_t except) {
  pid_t found = 0;
  std::uint64_t start = 0;
  for (const Holder& holder : holders) {
    const JobProcess* known = context.job().find(holder.pid);
    const auto row = known != nullptr ? std::optional(known->row) : read_process(holder.pid);
    if (holder.pid != except && row && (found == 0 || row->start_ticks < start)) {
      found = holder.pid;
      start = row->start_ticks;
    }
  }
  return found;
}

pid_t socket_owner(WaitContext& context, std::uint64_t inode, pid_t except) {
  if (inode == 0) {
    return 0;
  }
  const std::string link = fmt::format("socket:[{}]", inode);
  const auto& holders = context.descriptors().holders(link);
  return oldest(context, holders.empty() ? context.descriptors().holders_anywhere(link) : holders,
                except);
}

std::string end_text(const std::string& address, int port) {
  return address.find(':') == std::string::npos ? fmt::format("{}:{}", address, port)
                                                : fmt::format("[{}]:{}", address, port);
}

WaitTarget tcp_wait(WaitContext& context, pid_t self, const TcpTable& table,
                    const TcpSocket& socket) {
  WaitTarget target{.kind = "socket", .target = {}, .detail = {}};
  if (socket.state == TcpState::kListen) {
    target.detail =
        fmt::format("listens on tcp {}", end_text(socket.local_address, socket.local_port));
    return target;
  }
  const std::string remote = end_text(socket.remote_address, socket.remote_port);
  const bool connecting = socket.state == TcpState::kSynSent;
  const TcpSocket* peer =
      connecting ? table.listener(socket.remote_address, socket.remote_port) : table.peer(socket);
  const pid_t owner = peer == nullptr ? 0 : socket_owner(context, peer->inode, self);
  target.target = owner != 0 ? fmt::format("pid:{}", owner) : "address:" + remote;
  target.detail = fmt::format("{} tcp {}{}", connecting ? "connects to" : "peer", remote,
                              owner == 0 ? "" : ", " + context.describe(owner));
  if (connecting && owner == 0) {
    target.detail += ", which does not answer";
  } else if (socket.state == TcpState::kCloseWait) {
    target.detail += ", which has closed the connection";
  }
  return target;
}

std::optional<WaitTarget> socket_wait(WaitContext& context, const JobProcess& process,
                                      const Descriptor& descriptor) {
  const pid_t self = process.row.pid;
  const TcpTable& table = context.tcp(self);
  if (const TcpSocket* socket = table.by_inode(descriptor.inode)) {
    return tcp_wait(context, self, table, *socket);
  }
  const auto& peers = context.unix_sockets();
  const auto peer = peers.find(descriptor.inode);
  WaitTarget target{.kind = "socket",
                    .target = {},
                    .detail = fmt::format("fd {} ({})", descriptor.fd, descriptor.link)};
  if (peer != peers.end()) {
    const pid_t owner = socket_owner(context, peer->second, self);
    target.target = owner == 0 ? std::string() : fmt::format("pid:{}", owner);
    target.detail = owner == 0
                        ? fmt::format("unix socket, fd {}; no other process has the other end open",
                                      descriptor.fd)
                        : fmt::format("unix socket to {}", context.describe(owner));
  }
  return target;
}

bool is_fifo(pid_t pid, int fd, const std::optional<Mount>& mount) {
  struct stat found{};
  if (mount && mount->remote()) {
    return false;  // stat may block on the server
  }
  return ::stat(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), &found) == 0 &&
         S_ISFIFO(found.st_mode);
}

WaitTarget file_wait(WaitContext& context, const JobProcess& process, const Descriptor& open,
                     Direction direction) {
  const auto mount = mount_of_descriptor(process.row.pid, open.fd);
  if (is_fifo(process.row.pid, open.fd, mount)) {
    return channel(context, process, open, "fifo", direction);
  }
  const std::string where =
      mount && mount->remote()
          ? fmt::format(", on {} mounted at {}", mount->type, base::printable(mount->path))
          : std::string();
  return WaitTarget{
      .kind = "file",
      .target = "file:" + open.link,
      .detail = fmt::format("fd {} ({}){}", open.fd, base::printable(open.link), where)};
}

std::optional<WaitTarget> pidfd_wait(WaitContext& context, const JobProcess& process, int fd) {
  const auto text = read_file(fmt::format("/proc/{}/fdinfo/{}", process.row.pid, fd));
  const auto pid = text ? number<pid_t>(status_field(*text, "Pid").value_or("")) : std::nullopt;
  if (!pid || *pid <= 0) {
    return std::nullopt;
  }
  return WaitTarget{.kind = "process",
                    .target = fmt::format("pid:{}", *pid),
                    .detail = "pidfd of " + context.describe(*pid)};
}

WaitTarget terminal_or_input(WaitContext& context, const JobProcess& process,
                             const Descriptor& descriptor) {
  WaitTarget target{.kind = "input", .target = {}, .detail = {}};
  if (descriptor.kind == DescriptorKind::kPipe) {
    target = channel(context, process, descriptor, "input", Direction::kRead);
    target.detail = "standard input; " + target.detail;
  } else {
    target.detail =
        fmt::format("reads fd {} ({})", descriptor.fd, base::printable(descriptor.link));
  }
  return target;
}

}  // namespace

std::optional<WaitTarget> descriptor_wait(WaitContext& context, const JobProcess& process, int fd,
                                          Direction direction) {
  const auto open = descriptor(process.row.pid, fd);
  if (!open) {
    return std::nullopt;
  }
  const bool standard_input = fd == 0 && direction == Direction::kRead;
  switch (open->kind) {
    case DescriptorKind::kPipe:
      return standard_input ? terminal_or_input(context, process, *open)
                            : channel(context, process, *open, "pipe", direction);
    case DescriptorKind::kSocket:
      return socket_wait(context, process, *open);
    case DescriptorKind::kTty:
      return direction == Direction::kRead ? terminal_or_input(context, process, *open)
                                           : file_wait(context, process, *open, direction);
    case DescriptorKind::kPidFd:
      return pidfd_wait(context, process, fd);
    case DescriptorKind::kInotify:
      return WaitTarget{
          .kind = "file", .target = {}, .detail = fmt::format("fd {} watches files (inotify)", fd)};
    case DescriptorKind::kFile:
    case DescriptorKind::kShm:
    case DescriptorKind::kDevice:
      return file_wait(context, process, *open, direction);
    case DescriptorKind::kEventFd:
    case DescriptorKind::kEpoll:
    case DescriptorKind::kAnonymous:
    case DescriptorKind::kOther:
      break;
  }
  return std::nullopt;
}

std::optional<WaitTarget> any_of(std::vector<WaitTarget> targets) {
  if (targets.empty()) {
    return std::nullopt;
  }
  WaitTarget first = targets.front();
  const bool agree = std::all_of(targets.begin(), targets.end(), [&first](const WaitTarget& one) {
    return one.target == first.target && one.kind == first.kind;
  });
  if (agree && (targets.size() == 1 || !first.target.empty())) {
    return first;
  }
  std::string detail = "any of: ";
  for (std::size_t i = 0; i < targets.size() && i < kMostNamed; ++i) {
    detail += (i == 0 ? "" : "; ") + targets[i].detail;
  }
  if (targets.size() > kMostNamed) {
    detail += fmt::format("; and {} more", targets.size() - kMostNamed);
  }
  return WaitTarget{.kind = first.kind, .target = {}, .detail = std::move(detail)};
}

}  // namespace ddpdoctor::sources
