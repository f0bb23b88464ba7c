// SPDX-License-Identifier: Apache-2.0
// Which process maps which segment of /dev/shm. Considers only writable shared mappings of a
// descriptor (data sets are mapped for reading), and of these only files of /dev/shm that still
// have a name: a file without a name cannot be left behind.
#include <atomic>
#include <cstring>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/inside.h"
#include "agent/process/segments.h"
#include "agent/real.h"
#include "agent/record/decimal.h"
#include "agent/record/file_status.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

using MapFunction = void* (*)(void*, std::size_t, int, int, int, off_t);

constexpr char kFolder[] = "/dev/shm";
constinit std::atomic<MapFunction> real_mmap{nullptr};
constinit std::atomic<MapFunction> real_mmap64{nullptr};
constinit std::atomic<std::uint64_t> shm_device{0};  // device + 1; 0 = not determined yet

bool is_shared_memory(const struct stat& status) {
  std::uint64_t device = shm_device.load(std::memory_order_relaxed);
  if (device == 0) {
    struct stat folder{};
    device = status_of(kFolder, folder) ? folder.st_dev + 1 : ~std::uint64_t{0};
    shm_device.store(device, std::memory_order_relaxed);
  }
  return status.st_dev + 1 == device && S_ISREG(status.st_mode) && status.st_nlink > 0;
}

/// The name under /dev/shm with its slash; empty if it cannot be read.
std::size_t name_of(int descriptor, char* into, std::size_t size) {
  char link[32] = "/proc/self/fd/";
  *put_decimal(link + strlen(link), descriptor) = 0;
  char path[256];
  const ssize_t length = readlink(link, path, sizeof path);
  constexpr std::size_t kBefore = sizeof kFolder - 1;
  if (length <= static_cast<ssize_t>(kBefore) || memcmp(path, kFolder, kBefore) != 0 ||
      static_cast<std::size_t>(length) - kBefore >= size) {
    return 0;
  }
  memcpy(into, path + kBefore, static_cast<std::size_t>(length) - kBefore);
  into[static_cast<std::size_t>(length) - kBefore] = 0;
  return static_cast<std::size_t>(length) - kBefore;
}

bool same_segment(const char* known, const char* name) {
  return strcmp(known[0] == '/' ? known + 1 : known, name + 1) == 0;
}

void remember_mapping(wire::Ring& ring, const char* name, const struct stat& status) {
  const std::uint32_t rows = ring.header.segments.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < rows && i < wire::kSegments; ++i) {
    if (same_segment(ring.segment[i].name, name)) {
      ring.segment[i].created |= wire::kSegmentMapped;
      give_row(ring, i, status.st_ino);
      return;
    }
  }
  const std::uint32_t row =
      ring.header.segments.fetch_add(1, std::memory_order_relaxed) % wire::kSegments;
  wire::Segment& segment = ring.segment[row];
  give_row(ring, row, status.st_ino);
  strncpy(segment.name, name, sizeof segment.name - 1);
  segment.bytes = static_cast<std::uint64_t>(status.st_size);
  segment.created = wire::kSegmentMapped;
  segment.unlinked = 0;
  segment.time = now();
}

/// Looking up a name takes microseconds: most are known from shm_open or from the previous mapping.
__attribute__((noinline)) void mapped(int descriptor) {
  const Inside inside;
  struct stat status{};
  if (!inside || !status_of(descriptor, status) || !is_shared_memory(status)) {
    return;
  }
  wire::Ring* const there = ring();
  const std::uint32_t row = there == nullptr ? wire::kSegments : row_of(*there, status.st_ino);
  if (row < wire::kSegments) {
    there->segment[row].created |= wire::kSegmentMapped;
    return;
  }
  char name[sizeof(wire::Segment::name)] = "/";
  const char* const opened = opened_name(descriptor, status.st_ino);
  if (*opened != 0) {
    strncpy(name + 1, opened, sizeof name - 2);
  } else if (name_of(descriptor, name, sizeof name) < 2) {
    return;
  }
  if (wire::Ring* const ring_now = ring_or_make(); ring_now != nullptr) {
    remember_mapping(*ring_now, name, status);
  }
}

void* map(MapFunction real, void* address, std::size_t length, int protection, int flags,
          int descriptor, off_t offset) {
  // An allocator may map memory before our constructor ran, or while it initializes itself: no
  // dlsym then.
  void* const at = real != nullptr
                       ? real(address, length, protection, flags, descriptor, offset)
                       : reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection,
                                                         flags, descriptor, offset));
  const bool written = (flags & MAP_SHARED) != 0 && (protection & PROT_WRITE) != 0;
  if (written && descriptor >= 0 && at != MAP_FAILED && real != nullptr) [[unlikely]] {
    mapped(descriptor);
  }
  return at;
}

}  // namespace

void find_functions_of_maps() {
  real_mmap.store(Real<MapFunction>("mmap").get(), std::memory_order_release);
  real_mmap64.store(Real<MapFunction>("mmap64").get(), std::memory_order_release);
}

}  // namespace ddpdoctor::agent

using namespace ddpdoctor::agent;

extern "C" {

EXPORT void* mmap(void* address, std::size_t length, int protection, int flags, int descriptor,
                  off_t offset) noexcept {
  return map(real_mmap.load(std::memory_order_acquire), address, length, protection, flags,
             descriptor, offset);
}

EXPORT void* mmap64(void* address, std::size_t length, int protection, int flags, int descriptor,
                    off64_t offset) noexcept {
  return map(real_mmap64.load(std::memory_order_acquire), address, length, protection, flags,
             descriptor, offset);
}
}
