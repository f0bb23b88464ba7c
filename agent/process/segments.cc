// SPDX-License-Identifier: Apache-2.0
#include "agent/process/segments.h"

#include <atomic>
#include <cstring>

#include "agent/record/file_status.h"

namespace ddpdoctor::agent {
namespace {

/// Valid for one ring only: a forked child makes its own ring and must not use it.
struct Rows {
  std::atomic<const wire::Ring*> ring;
  std::atomic<std::uint64_t> inode[wire::kSegments];
};
constinit Rows rows{};

struct Opened {
  int descriptor;
  std::uint64_t inode;
  char name[sizeof(wire::Segment::name)];
};
constinit thread_local Opened opened{.descriptor = -1, .inode = 0, .name = {}};

}  // namespace

std::uint64_t inode_of(int descriptor) {
  struct stat status{};
  return status_of(descriptor, status) ? status.st_ino : 0;
}

void give_row(wire::Ring& ring, std::uint32_t row, std::uint64_t inode) {
  if (rows.ring.exchange(&ring, std::memory_order_acq_rel) != &ring) {
    for (std::atomic<std::uint64_t>& known : rows.inode) {
      known.store(0, std::memory_order_relaxed);
    }
  }
  rows.inode[row].store(inode, std::memory_order_release);
}

std::uint32_t row_of(wire::Ring& ring, std::uint64_t inode) {
  if (rows.ring.load(std::memory_order_acquire) != &ring || inode == 0) {
    return wire::kSegments;
  }
  const std::uint32_t made = ring.header.segments.load(std::memory_order_acquire);
  const std::uint32_t used = made < wire::kSegments ? made : wire::kSegments;
  for (std::uint32_t row = 0; row < used; ++row) {
    if (rows.inode[row].load(std::memory_order_relaxed) == inode) {
      return row;
    }
  }
  return wire::kSegments;
}

void remember_opened(int descriptor, const char* name) {
  const char* const plain = name + strspn(name, "/");
  const std::size_t length = strlen(plain);
  opened.descriptor = length + 1 < sizeof opened.name ? descriptor : -1;
  if (opened.descriptor >= 0) {
    opened.inode = inode_of(descriptor);
    memcpy(opened.name, plain, length + 1);
  }
}

const char* opened_name(int descriptor, std::uint64_t inode) {
  const bool same = opened.descriptor == descriptor && opened.inode == inode && inode != 0;
  return same ? opened.name : "";
}

}  // namespace ddpdoctor::agent
