// SPDX-License-Identifier: Apache-2.0
// How the double of NCCL moves bytes: queues in shared memory without sizes, types or names, and
// the rings and chains over them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <sys/mman.h>

namespace ddpdoctor::doubles {

inline constexpr int kRanks = 8;
inline constexpr std::size_t kChunk = 16 * 1024;
inline constexpr std::size_t kSlots = 8;
inline constexpr int kSuccess = 0;
inline constexpr int kInvalidArgument = 4;
inline constexpr int kInProgress = 7;

/// Bytes from one rank to another, without length or type.
struct Queue {
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> read;
  char data[kSlots][kChunk];
};

struct Shared {
  std::atomic<int> joined;
  std::atomic<int> entered[64];  // barriers of the communicator, by number
  std::atomic<int> color[64][kRanks];
  std::atomic<int> key[64][kRanks];
  std::atomic<std::uint64_t> signals[kRanks][kRanks];
  Queue queue[kRanks][kRanks];
};

struct Communicator {
  std::string name;
  int rank = 0;
  int size = 0;
  Shared* shared = nullptr;
  std::atomic<bool> aborted{false};
  bool blocking = true;
  std::atomic<int> state{kSuccess};
  int barriers = 0;
  int children = 0;
  std::uint64_t magic = 0;
  std::uint64_t waited[kRanks] = {};
  std::atomic<int> calls{0};
  const void* plugin = nullptr;
  void* profile = nullptr;
  int profiled = 0;
  int interface = 0;
  std::uint64_t hash = 0;
};

struct UniqueId {
  char bytes[128];
};

inline std::uint64_t hash_of(const void* bytes, std::size_t size,
                             std::uint64_t hash = 14695981039346656037U) {
  for (std::size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 1099511628211U;
  }
  return hash;
}

inline std::string name_of(std::uint64_t hash) {
  char text[64];
  std::snprintf(text, sizeof text, "/nccl-double-%016llx", static_cast<unsigned long long>(hash));
  return text;
}

inline int number_from(const char* variable, int absent) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? absent : std::atoi(text);
}

inline void pause_a_little() {
  usleep(200);
}

inline bool join(Communicator& comm) {
  const char* const folder = std::getenv(
      "NCCL_IDS");  // the test's own folder: nothing is left behind if the ranks never meet
  const std::string path = (folder == nullptr ? "/dev/shm" : folder) + comm.name;
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0) {
    return false;
  }
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) {
    return false;
  }
  comm.shared = static_cast<Shared*>(memory);
  comm.shared->joined.fetch_add(1);
  while (comm.shared->joined.load() < comm.size && !comm.aborted) {
    pause_a_little();
  }
  unlink(path.c_str());
  return !comm.aborted;
}

inline void barrier(Communicator& comm) {
  const int number = comm.barriers++ % 64;
  comm.shared->entered[number].fetch_add(1);
  while (comm.shared->entered[number].load() < comm.size && !comm.aborted) {
    pause_a_little();
  }
}

/// One direction of one transfer, chunk by chunk.
struct Transfer {
  Queue* queue;
  char* memory;
  std::size_t left;
  bool sends;

  /// True if a chunk was moved.
  bool step() {
    const std::uint64_t written = queue->written.load(std::memory_order_acquire);
    const std::uint64_t read = queue->read.load(std::memory_order_acquire);
    if (left == 0 || (sends ? written - read >= kSlots : written == read)) {
      return false;
    }
    const std::size_t part = std::min(left, kChunk);
    if (sends) {
      std::memcpy(queue->data[written % kSlots], memory, part);
      queue->written.store(written + 1, std::memory_order_release);
    } else {
      std::memcpy(memory, queue->data[read % kSlots], part);
      queue->read.store(read + 1, std::memory_order_release);
    }
    memory += part;
    left -= part;
    return true;
  }
};

/// All transfers at the same time until all are done, as NCCL progresses the messages of a group.
inline void progress(Communicator& comm, std::vector<Transfer>& transfers) {
  for (bool open = true; open && !comm.aborted;) {
    bool moved = false;
    open = false;
    for (Transfer& one : transfers) {
      moved = one.step() || moved;
      open = open || one.left > 0;
    }
    if (!moved && open) {
      pause_a_little();
    }
  }
}

inline Transfer sending(Communicator& comm, int to, const void* memory, std::size_t bytes) {
  return {&comm.shared->queue[comm.rank][to], static_cast<char*>(const_cast<void*>(memory)), bytes,
          true};
}

inline Transfer receiving(Communicator& comm, int from, void* memory, std::size_t bytes) {
  return {&comm.shared->queue[from][comm.rank], static_cast<char*>(memory), bytes, false};
}

inline void run(Communicator& comm, std::vector<Transfer> transfers) {
  progress(comm, transfers);
}

inline std::size_t size_of(int type) {
  constexpr std::size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? kSizes[type] : 1;
}

template <typename T>
void fold(void* into, const void* other, std::size_t count, int op) {
  auto* const a = static_cast<T*>(into);
  const auto* const b = static_cast<const T*>(other);
  for (std::size_t i = 0; i < count; ++i) {
    a[i] = op == 1   ? static_cast<T>(a[i] * b[i])
           : op == 2 ? std::max(a[i], b[i])
           : op == 3 ? std::min(a[i], b[i])
                     : static_cast<T>(a[i] + b[i]);
  }
}

inline void fold(void* into, const void* other, std::size_t count, int type, int op) {
  switch (type) {
    case 2:
      return fold<std::int32_t>(into, other, count, op);
    case 4:
      return fold<std::int64_t>(into, other, count, op);
    case 7:
      return fold<float>(into, other, count, op);
    case 8:
      return fold<double>(into, other, count, op);
    default:
      return fold<unsigned char>(into, other, count * size_of(type), op);
  }
}

/// Along the chain 0 → 1 → …; each rank adds its own values, the last one has the result.
inline void reduce_chain(Communicator& comm, std::vector<char>& own, std::size_t count, int type,
                         int op) {
  if (comm.rank > 0) {
    std::vector<char> partial(own.size());
    run(comm, {receiving(comm, comm.rank - 1, partial.data(), partial.size())});
    fold(own.data(), partial.data(), count, type, op);
  }
  if (comm.rank + 1 < comm.size) {
    run(comm, {sending(comm, comm.rank + 1, own.data(), own.size())});
  }
}

/// Around the ring from `root`.
inline void broadcast_ring(Communicator& comm, char* memory, std::size_t bytes, int root) {
  const int next = (comm.rank + 1) % comm.size;
  const int before = (comm.rank + comm.size - 1) % comm.size;
  if (comm.rank != root) {
    run(comm, {receiving(comm, before, memory, bytes)});
  }
  if (next != root) {
    run(comm, {sending(comm, next, memory, bytes)});
  }
}

inline void all_gather_ring(Communicator& comm, const void* from, char* to, std::size_t bytes) {
  std::memmove(to + static_cast<std::size_t>(comm.rank) * bytes, from, bytes);
  for (int step = 0; step + 1 < comm.size; ++step) {
    const int mine = (comm.rank + comm.size - step) % comm.size;
    const int others = (mine + comm.size - 1) % comm.size;
    run(comm, {sending(comm, (comm.rank + 1) % comm.size,
                       to + static_cast<std::size_t>(mine) * bytes, bytes),
               receiving(comm, (comm.rank + comm.size - 1) % comm.size,
                         to + static_cast<std::size_t>(others) * bytes, bytes)});
  }
}

}  // namespace ddpdoctor::doubles
