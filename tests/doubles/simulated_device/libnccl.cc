// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 whose kernels run on the simulated device. Contains only what ProcessGroupNCCL
// calls. As in NCCL, nothing is checked across ranks, and a host waits for other ranks only when
// communicators are made.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <poll.h>
#include <utility>
#include <vector>

#include <sys/random.h>

#include "driver.h"

using namespace simulated;

namespace {

constexpr int kSuccess = 0;
constexpr int kUnhandledCudaError = 1;
constexpr int kInvalidArgument = 4;

struct UniqueId {
  char bytes[128];
};

struct Communicator {
  std::uint64_t id = 0;
  int rank = 0;
  int size = 0;
  int children = 0;
};

struct Held {
  void* stream;
  Command command;
};
thread_local int depth = 0;
thread_local std::vector<Held> held;

std::uint64_t hash_of(const void* bytes, std::size_t size,
                      std::uint64_t hash = 14695981039346656037U) {
  for (std::size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 1099511628211U;
  }
  return hash == 0 ? 1 : hash;
}

/// Blocks until all its ranks have arrived. Sleeps, as the sockets of NCCL's bootstrap do.
__attribute__((noinline)) const Meeting* bootstrapInit(const Communicator& own, int color,
                                                       int key) {
  static std::atomic<int> next{0};
  Device* const device = simulated_device();
  const int slot = next.fetch_add(1);
  if (device == nullptr || slot >= kMeetings) {
    return nullptr;
  }
  Meeting& meeting = device->meetings[slot];
  meeting.communicator = own.id;
  meeting.rank = own.rank;
  meeting.size = own.size;
  meeting.color = color;
  meeting.key = key;
  meeting.state.store(1, std::memory_order_release);
  while (meeting.state.load(std::memory_order_acquire) != 2) {
    poll(nullptr, 0, 5);
  }
  return &meeting;
}

int launch(void* stream, Kind kind, const void* comm, const Command& more) {
  if (comm == nullptr || stream == nullptr) {
    return kInvalidArgument;
  }
  const auto& own = *static_cast<const Communicator*>(comm);
  Command command = more;
  command.kind = kind;
  command.communicator = own.id;
  command.rank = own.rank;
  command.size = own.size;
  if (depth > 0) {
    held.push_back({stream, command});
    return kSuccess;
  }
  return simulated_launch(stream, &command, 1);
}

Command call(const void* from, void* to, std::size_t count, int type, int op = 0, int peer = 0) {
  Command command{};
  command.from = reinterpret_cast<std::uint64_t>(from);
  command.to = reinterpret_cast<std::uint64_t>(to);
  command.count = count;
  command.type = type;
  command.op = op;
  command.peer = peer;
  return command;
}

bool is_message(const Held& one) {
  return one.command.kind == Kind::kSend || one.command.kind == Kind::kReceive;
}

/// Messages of one communicator run at the same time, as one kernel; collectives run one by one.
void flush(std::vector<Held> all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<Command> commands{all[i].command};
    for (std::size_t j = i + 1; is_message(all[i]) && j < all.size();) {
      if (is_message(all[j]) && all[j].stream == all[i].stream &&
          all[j].command.communicator == all[i].command.communicator) {
        commands.push_back(all[j].command);
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(j));
      } else {
        ++j;
      }
    }
    commands.front().together = static_cast<std::uint32_t>(commands.size() - 1);
    simulated_launch(all[i].stream, commands.data(), static_cast<int>(commands.size()));
  }
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22809;
  return kSuccess;
}
const char* ncclGetErrorString(int result) {
  return result == kSuccess ? "no error" : "unhandled cuda error";
}
const char* ncclGetLastError(void*) {
  return "";
}
int ncclGetUniqueId(UniqueId* id) {
  return getrandom(id->bytes, sizeof id->bytes, 0) == sizeof id->bytes ? kSuccess : 2;
}
int ncclCommInitRank(void** out, int size, UniqueId id, int rank) {
  auto* const comm = new Communicator;
  comm->id = hash_of(id.bytes, sizeof id.bytes);
  comm->rank = rank;
  comm->size = size;
  if (bootstrapInit(*comm, 0, rank) == nullptr) {
    delete comm;
    return kUnhandledCudaError;
  }
  *out = comm;
  return kSuccess;
}
int ncclCommSplit(void* parent, int color, int key, void** out, void*) {
  auto& own = *static_cast<Communicator*>(parent);
  Communicator meeting = own;
  ++own.children;
  meeting.id = hash_of(&own.children, sizeof own.children, own.id);
  const Meeting* const met = bootstrapInit(meeting, color, key);
  if (met == nullptr) {
    return kUnhandledCudaError;
  }
  *out = nullptr;
  if (color >= 0) {
    *out = new Communicator{.id = hash_of(&color, sizeof color, meeting.id),
                            .rank = met->new_rank,
                            .size = met->new_size};
  }
  return kSuccess;
}
int ncclCommCount(void* comm, int* count) {
  *count = static_cast<Communicator*>(comm)->size;
  return kSuccess;
}
int ncclCommUserRank(void* comm, int* rank) {
  *rank = static_cast<Communicator*>(comm)->rank;
  return kSuccess;
}
int ncclCommCuDevice(void*, int* number) {
  *number = 0;
  return kSuccess;
}
int ncclCommGetAsyncError(void*, int* state) {
  *state = kSuccess;
  return kSuccess;
}
int ncclCommDestroy(void*) {
  return kSuccess;
}
int ncclCommAbort(void* comm) {
  Device* const device = simulated_device();
  for (auto& slot : device->aborted) {
    std::uint64_t free = 0;
    if (slot.compare_exchange_strong(free, static_cast<Communicator*>(comm)->id)) {
      break;
    }
  }
  return kSuccess;
}

int ncclGroupStart() {
  ++depth;
  return kSuccess;
}
int ncclGroupEnd() {
  if (depth > 0 && --depth == 0) {
    flush(std::exchange(held, {}));
  }
  return kSuccess;
}

int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int op, void* comm,
                  void* stream) {
  return launch(stream, Kind::kAllReduce, comm, call(from, to, count, type, op));
}
int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, void* comm,
                  void* stream) {
  return launch(stream, Kind::kBroadcast, comm, call(from, to, count, type, 0, root));
}
int ncclReduce(const void* from, void* to, std::size_t count, int type, int op, int root,
               void* comm, void* stream) {
  return launch(stream, Kind::kReduce, comm, call(from, to, count, type, op, root));
}
int ncclAllGather(const void* from, void* to, std::size_t count, int type, void* comm,
                  void* stream) {
  return launch(stream, Kind::kAllGather, comm, call(from, to, count, type));
}
int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int op, void* comm,
                      void* stream) {
  return launch(stream, Kind::kReduceScatter, comm, call(from, to, count, type, op));
}
int ncclSend(const void* from, std::size_t count, int type, int peer, void* comm, void* stream) {
  return launch(stream, Kind::kSend, comm, call(from, nullptr, count, type, 0, peer));
}
int ncclRecv(void* to, std::size_t count, int type, int peer, void* comm, void* stream) {
  return launch(stream, Kind::kReceive, comm, call(nullptr, to, count, type, 0, peer));
}
}
