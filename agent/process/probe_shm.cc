// SPDX-License-Identifier: Apache-2.0
// Shared memory: which process created and removed which segment, its size, and where space ran
// out.
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/types.h>

#include "agent/inside.h"
#include "agent/process/segments.h"
#include "agent/real.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

constinit Real<int (*)(const char*, int, mode_t)> real_shm_open{"shm_open"};
constinit Real<int (*)(const char*)> real_shm_unlink{"shm_unlink"};
constinit Real<int (*)(int, off_t)> real_ftruncate{"ftruncate"};
constinit Real<int (*)(int, off_t)> real_ftruncate64{"ftruncate64"};
constinit Real<int (*)(int, off_t, off_t)> real_posix_fallocate{"posix_fallocate"};
constinit Real<int (*)(int, off_t, off_t)> real_posix_fallocate64{"posix_fallocate64"};

/// The segment of a descriptor; descriptors beyond the table are not tracked.
constexpr int kDescriptors = 4096;
struct alignas(kPage) Descriptors {
  std::uint16_t segment[kDescriptors];  // index + 1 in this process's ring
};
constinit Descriptors descriptors{};
constinit std::atomic<bool> forgotten_in_children{false};

std::uint32_t text(wire::Ring& ring, const char* name) {
  const std::size_t length = strnlen(name, 256);
  return intern(ring, name, length);
}

void created(const char* name, int descriptor) {
  wire::Ring* const ring_now = ring_or_make();
  if (ring_now == nullptr) {
    return;
  }
  record(*ring_now, {.kind = wire::EventKind::kShmOpen,
                     .site = call_site(*ring_now),
                     .count = descriptor < 0 ? -errno : descriptor,
                     .text = text(*ring_now, name)});
  if (descriptor < 0) {
    return;
  }
  const std::uint32_t index =
      ring_now->header.segments.fetch_add(1, std::memory_order_relaxed) % wire::kSegments;
  wire::Segment& segment = ring_now->segment[index];
  give_row(*ring_now, index, inode_of(descriptor));
  strncpy(segment.name, name, sizeof segment.name - 1);
  segment.bytes = 0;
  segment.created = wire::kSegmentCreated;
  segment.unlinked = 0;
  segment.time = now();
  if (descriptor < kDescriptors) {
    if (!forgotten_in_children.exchange(true, std::memory_order_relaxed)) {
      forget_in_children(&descriptors, sizeof descriptors);
    }
    descriptors.segment[descriptor] = static_cast<std::uint16_t>(index + 1);
  }
}

void sized(int descriptor, off_t bytes, int error) {
  if (descriptor < 0 || descriptor >= kDescriptors || descriptors.segment[descriptor] == 0) {
    return;
  }
  const Inside inside;
  wire::Ring* const ring_now = ring();
  if (!inside || ring_now == nullptr) {
    return;
  }
  wire::Segment& segment = ring_now->segment[descriptors.segment[descriptor] - 1];
  if (error == 0) {
    segment.bytes = static_cast<std::uint64_t>(bytes);
  }
  descriptors.segment[descriptor] = 0;  // a descriptor is reused; its segment gets a size once
  record(*ring_now, {.kind = wire::EventKind::kShmSize,
                     .site = call_site(*ring_now),
                     .count = bytes,
                     .peer = error,
                     .text = text(*ring_now, segment.name)});
}

}  // namespace
}  // namespace ddpdoctor::agent

using namespace ddpdoctor::agent;

extern "C" {

EXPORT int shm_open(const char* name, int flags, mode_t mode) {
  const int descriptor = real_shm_open.get()(name, flags, mode);
  const Inside inside;
  if (inside && name != nullptr && (flags & O_CREAT) != 0) {
    created(name, descriptor);
  } else if (inside && name != nullptr && descriptor >= 0) {
    remember_opened(descriptor, name);
  }
  return descriptor;
}

EXPORT int shm_unlink(const char* name) {
  const int result = real_shm_unlink.get()(name);
  const Inside inside;
  ddpdoctor::wire::Ring* const ring_now = ring();
  if (inside && ring_now != nullptr && name != nullptr) {
    for (ddpdoctor::wire::Segment& segment : ring_now->segment) {
      if ((segment.created & ddpdoctor::wire::kSegmentCreated) != 0 &&
          strncmp(segment.name, name, sizeof segment.name - 1) == 0) {
        segment.unlinked = 1;
      }
    }
    record(*ring_now, {.kind = ddpdoctor::wire::EventKind::kShmUnlink,
                       .count = result,
                       .text = text(*ring_now, name)});
  }
  return result;
}

EXPORT int ftruncate(int descriptor, off_t length) noexcept {
  const int result = real_ftruncate.get()(descriptor, length);
  sized(descriptor, length, result == 0 ? 0 : errno);
  return result;
}

EXPORT int ftruncate64(int descriptor, off64_t length) noexcept {
  const int result = real_ftruncate64.get()(descriptor, length);
  sized(descriptor, length, result == 0 ? 0 : errno);
  return result;
}

EXPORT int posix_fallocate(int descriptor, off_t offset, off_t length) {
  const int error = real_posix_fallocate.get()(descriptor, offset, length);
  sized(descriptor, offset + length, error);
  return error;
}

EXPORT int posix_fallocate64(int descriptor, off64_t offset, off64_t length) {
  const int error = real_posix_fallocate64.get()(descriptor, offset, length);
  sized(descriptor, offset + length, error);
  return error;
}
}
