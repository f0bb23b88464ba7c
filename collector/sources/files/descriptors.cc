// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/files/descriptors.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/stat.h>

#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

namespace {

std::uint64_t bracketed_number(std::string_view link) {
  const std::size_t open = link.find('[');
  if (open == std::string_view::npos || !link.ends_with(']')) {
    return 0;
  }
  return number<std::uint64_t>(link.substr(open + 1, link.size() - open - 2)).value_or(0);
}

DescriptorKind anonymous_kind(std::string_view name) {
  if (name.starts_with("[eventfd")) {
    return DescriptorKind::kEventFd;
  }
  if (name.starts_with("[eventpoll]")) {
    return DescriptorKind::kEpoll;
  }
  if (name.starts_with("inotify") || name.starts_with("[fanotify]")) {
    return DescriptorKind::kInotify;
  }
  return name.starts_with("[pidfd]") ? DescriptorKind::kPidFd : DescriptorKind::kAnonymous;
}

DescriptorKind path_kind(std::string_view path) {
  if (path.starts_with("/dev/pts/") || path.starts_with("/dev/tty") || path == "/dev/console") {
    return DescriptorKind::kTty;
  }
  if (path.starts_with("/dev/shm/") || path.starts_with("/memfd:")) {
    return DescriptorKind::kShm;
  }
  return path.starts_with("/dev/") ? DescriptorKind::kDevice : DescriptorKind::kFile;
}

}  // namespace

Descriptor parse_descriptor(int fd, std::string_view link) {
  constexpr std::string_view kAnonymous = "anon_inode:";
  Descriptor found;
  found.fd = fd;
  if (link.starts_with('/') && link.ends_with(kDeleted)) {
    found.deleted = true;
    link.remove_suffix(kDeleted.size());
  }
  found.link = link;
  if (link.starts_with("pipe:[")) {
    found.kind = DescriptorKind::kPipe;
    found.inode = bracketed_number(link);
  } else if (link.starts_with("socket:[")) {
    found.kind = DescriptorKind::kSocket;
    found.inode = bracketed_number(link);
  } else if (link.starts_with(kAnonymous)) {
    found.kind = anonymous_kind(link.substr(kAnonymous.size()));
  } else if (link.starts_with('/')) {
    found.kind = path_kind(link);
  }
  return found;
}

std::optional<Descriptor> descriptor(pid_t pid, int fd) {
  const auto link = fd < 0 ? std::nullopt : read_link(fmt::format("/proc/{}/fd/{}", pid, fd));
  return link ? std::optional(parse_descriptor(fd, *link)) : std::nullopt;
}

std::vector<Descriptor> descriptors_of(pid_t pid) {
  std::vector<Descriptor> found;
  for (const int fd : numbered_entries(proc_path(pid, "fd"))) {
    if (auto one = descriptor(pid, fd)) {
      found.push_back(std::move(*one));
    }
  }
  return found;
}

std::string_view kind_name(DescriptorKind kind) {
  switch (kind) {
    case DescriptorKind::kFile:
      return "file";
    case DescriptorKind::kPipe:
      return "pipe";
    case DescriptorKind::kSocket:
      return "socket";
    case DescriptorKind::kTty:
      return "terminal";
    case DescriptorKind::kShm:
      return "shm";
    case DescriptorKind::kDevice:
      return "device";
    case DescriptorKind::kEventFd:
      return "eventfd";
    case DescriptorKind::kEpoll:
      return "epoll";
    case DescriptorKind::kInotify:
      return "inotify";
    case DescriptorKind::kPidFd:
      return "pidfd";
    case DescriptorKind::kAnonymous:
      return "anonymous";
    case DescriptorKind::kOther:
      break;
  }
  return "other";
}

std::optional<OpenMode> open_mode(pid_t pid, int fd) {
  // The permissions of the link show how the descriptor was opened; fdinfo takes five times as
  // long, and a pipe that many workers inherited has hundreds of holders.
  struct stat link{};
  if (fd < 0 || ::lstat(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), &link) != 0) {
    return std::nullopt;
  }
  return OpenMode{.reads = (link.st_mode & S_IRUSR) != 0, .writes = (link.st_mode & S_IWUSR) != 0};
}

const std::vector<Descriptor>& DescriptorTable::of(pid_t pid) {
  const auto known = by_pid_.find(pid);
  if (known != by_pid_.end()) {
    return known->second;
  }
  add(pid);
  return by_pid_[pid];
}

const std::vector<Holder>& DescriptorTable::holders(const std::string& link) {
  read_job();
  return by_link_[link];
}

const std::vector<Holder>& DescriptorTable::holders_anywhere(const std::string& link) {
  read_job();
  read_machine();
  return by_link_[link];
}

void DescriptorTable::read_job() {
  if (!job_read_) {
    job_read_ = true;
    for (const pid_t pid : job_) {
      add(pid);
    }
  }
}

void DescriptorTable::read_machine() {
  if (!machine_read_) {
    machine_read_ = true;
    for (const int pid : numbered_entries("/proc")) {
      add(pid);
    }
  }
}

void DescriptorTable::add(pid_t pid) {
  const auto [place, fresh] = by_pid_.try_emplace(pid);
  if (!fresh) {
    return;
  }
  place->second = descriptors_of(pid);
  for (const Descriptor& one : place->second) {
    const bool shared = one.kind == DescriptorKind::kPipe || one.kind == DescriptorKind::kSocket ||
                        one.kind == DescriptorKind::kFile;
    if (shared) {
      by_link_[one.link].push_back(Holder{.pid = pid, .fd = one.fd});
    }
  }
}

}  // namespace ddpdoctor::sources
