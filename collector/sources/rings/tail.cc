// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/rings/tail.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/wait.h>

#include "collector/sources/rings/slots.h"
#include "wire/events.h"
#include "wire/layout.h"

namespace ddpdoctor::sources {
namespace {

bool read_at(int fd, void* into, std::size_t bytes, std::size_t offset) {
  return ::pread(fd, into, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

using HeaderBytes = std::array<char, sizeof(wire::Header)>;

template <typename T>
T field(const HeaderBytes& header, std::size_t offset) {
  T value;
  std::memcpy(&value, header.data() + offset, sizeof value);
  return value;
}

bool is_call(const PlainSlot& slot) {
  return static_cast<wire::EventKind>(slot.kind) == wire::EventKind::kCollective &&
         static_cast<wire::Phase>(slot.phase) == wire::Phase::kEnqueued;
}

bool is_completion(const PlainSlot& slot) {
  return static_cast<wire::EventKind>(slot.kind) == wire::EventKind::kCollective &&
         static_cast<wire::Phase>(slot.phase) == wire::Phase::kCompleted;
}

bool is_killed_child(const PlainSlot& slot) {
  return static_cast<wire::EventKind>(slot.kind) == wire::EventKind::kChildExit &&
         WIFSIGNALED(slot.peer);
}

}  // namespace

base::Result<RingTail> RingTail::open(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) {
    return base::failure(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  return RingTail(std::move(fd));
}

void RingTail::read_groups(std::uint32_t count) {
  groups_.resize(std::min<std::uint32_t>(count, wire::kGroups));
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (!groups_[i].name.empty() && groups_[i].size > 0) {
      continue;
    }
    std::array<char, sizeof(wire::Group)> bytes{};
    if (read_at(fd_.get(), bytes.data(), bytes.size(),
                offsetof(wire::Ring, group) + i * sizeof(wire::Group))) {
      const char* const name = bytes.data() + offsetof(wire::Group, name);
      groups_[i].name.assign(name, ::strnlen(name, sizeof(wire::Group::name)));
      std::memcpy(&groups_[i].size, bytes.data() + offsetof(wire::Group, size),
                  sizeof groups_[i].size);
    }
  }
}

RingNews RingTail::read() {
  RingNews news;
  HeaderBytes header{};
  if (!read_at(fd_.get(), header.data(), header.size(), 0) ||
      field<std::uint64_t>(header, offsetof(wire::Header, magic)) != wire::kMagic ||
      field<std::uint32_t>(header, offsetof(wire::Header, version)) != wire::kVersion) {
    return news;
  }
  pid_ = static_cast<pid_t>(field<std::uint32_t>(header, offsetof(wire::Header, pid)));
  news.collectives = field<std::uint64_t>(header, offsetof(wire::Header, collectives));
  news.ended = field<std::uint32_t>(header, offsetof(wire::Header, exit_kind)) != 0;
  news.rank = field<std::int32_t>(header, offsetof(wire::Header, rank));
  news.world_size = field<std::int32_t>(header, offsetof(wire::Header, world_size));
  news.start_ticks = field<std::uint64_t>(header, offsetof(wire::Header, start_ticks));
  news.lost = field<std::uint64_t>(header, offsetof(wire::Header, lost));
  const auto head = field<std::uint64_t>(header, offsetof(wire::Header, head));
  if (head == next_ || head < next_) {
    return news;
  }
  read_groups(field<std::uint32_t>(header, offsetof(wire::Header, groups)));
  next_ = std::max(next_, head > wire::kSlots ? head - wire::kSlots : 0);
  for (; next_ < head; ++next_) {
    PlainSlot slot{};
    if (!read_at(fd_.get(), &slot, sizeof slot,
                 offsetof(wire::Ring, slot) + (next_ % wire::kSlots) * sizeof slot)) {
      break;
    }
    if (slot.sequence == 0) {
      break;  // still being written: read it next time
    }
    if (slot.sequence != next_ + 1) {
      continue;  // overwritten in the meantime
    }
    news.children_killed += is_killed_child(slot) ? 1 : 0;
    if (slot.group == 0 || slot.group > groups_.size()) {
      continue;
    }
    const GroupName& group = groups_[slot.group - 1U];
    if (is_completion(slot)) {
      news.completed.push_back(
          {.group = group.name, .group_size = group.size, .completed = slot.group_sequence});
    } else if (is_call(slot)) {
      news.calls.push_back({.group = group.name,
                            .group_size = group.size,
                            .sequence = slot.group_sequence,
                            .operation = slot.operation,
                            .dtype = slot.dtype,
                            .reduce_op = slot.reduce_op,
                            .count = slot.count,
                            .root = slot.peer});
    }
  }
  return news;
}

}  // namespace ddpdoctor::sources
