// SPDX-License-Identifier: Apache-2.0
#include "agent/record/ring_file.h"

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

#include <sys/mman.h>

#include "agent/process_state.h"
#include "agent/record/claim.h"
#include "agent/record/decimal.h"
#include "agent/record/recorder.h"
#include "wire/names.h"

namespace ddpdoctor::agent {
namespace {

std::size_t read_file(const char* path, char* into, std::size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  std::size_t length = 0;
  while (length < size) {
    const ssize_t got = read(fd, into + length, size - length);
    if (got <= 0) {
      break;
    }
    length += static_cast<std::size_t>(got);
  }
  close(fd);
  return length;
}

/// Field 22 of /proc/self/stat.
std::uint64_t start_ticks() {
  char text[1024];
  const std::size_t length = read_file("/proc/self/stat", text, sizeof text - 1);
  text[length] = 0;
  const char* at = strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) {
    at = strchr(at + 1, ' ');
  }
  return at == nullptr ? 0 : strtoull(at + 1, nullptr, 10);
}

std::uint64_t wall_clock() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void fill_header(wire::Header& header, std::uint64_t start) {
  header.bytes = sizeof(wire::Ring);
  header.pid = static_cast<std::uint32_t>(getpid());
  header.ppid = static_cast<std::uint32_t>(getppid());
  header.start_ticks = start;
  header.rank = number_from_environment("RANK");
  header.local_rank = number_from_environment("LOCAL_RANK");
  header.world_size = number_from_environment("WORLD_SIZE");
  header.monotonic_ns = now();
  header.wall_ns = wall_clock();
  header.sites.store(1, std::memory_order_relaxed);  // 0 means unknown
  header.text_used.store(1, std::memory_order_relaxed);
  header.forked = process_state().forked ? 1 : 0;
  header.parent_team = process_state().parent_team;
  const std::size_t length =
      read_file("/proc/self/cmdline", header.command, sizeof header.command - 1);
  for (std::size_t i = 0; i + 1 < length; ++i) {
    if (header.command[i] == 0) {
      header.command[i] = ' ';
    }
  }
  header.version = wire::kVersion;
  std::atomic_thread_fence(std::memory_order_release);
  header.magic = wire::kMagic;
}

struct RingPath {
  char text[640];
  RingPath(const char* folder, pid_t pid, std::uint64_t start) {
    const std::size_t folder_length = strlen(folder);
    memcpy(text, folder, folder_length);
    char* at = text + folder_length;
    *at++ = '/';
    at = put_decimal(at, pid);
    *at++ = '-';
    at = put_decimal(at, static_cast<std::int64_t>(start));
    memcpy(at, wire::kRingSuffix, strlen(wire::kRingSuffix) + 1);
  }
};

}  // namespace

std::int32_t rank_in_ring_file(const char* folder, pid_t pid, std::uint64_t start_ticks) {
  const int fd = open(RingPath(folder, pid, start_ticks).text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  std::int32_t rank = -1;
  if (fd >= 0) {
    if (pread(fd, &rank, sizeof rank, offsetof(wire::Header, rank)) != sizeof rank) {
      rank = -1;
    }
    close(fd);
  }
  return rank;
}

wire::Ring* make_ring_file(const char* folder) {
  const std::uint64_t start = start_ticks();
  const RingPath path(folder, getpid(), start);
  const int fd = open(path.text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return nullptr;
  }
  void* mapped = MAP_FAILED;
  if (fallocate(fd, 0, 0, sizeof(wire::Ring)) == 0 ||
      posix_fallocate(fd, 0, sizeof(wire::Ring)) == 0) {
    mapped = mmap(nullptr, sizeof(wire::Ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (mapped == MAP_FAILED) {
    unlink(path.text);
    return nullptr;
  }
  auto* const made = static_cast<wire::Ring*>(mapped);
  fill_header(made->header, start);
  return made;
}

}  // namespace ddpdoctor::agent
