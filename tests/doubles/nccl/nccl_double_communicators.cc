// SPDX-License-Identifier: Apache-2.0
// The double of NCCL: creates, splits, grows and destroys communicators.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <sys/random.h>

#include "tests/doubles/nccl/nccl_double.h"
#include "tests/doubles/nccl/nccl_profiler_double.h"
#include "tests/doubles/nccl/nccl_transport.h"

using namespace ddpdoctor::doubles;

namespace {

std::uint64_t first_word(const UniqueId& id) {
  std::uint64_t word = 0;
  std::memcpy(&word, id.bytes, sizeof word);
  return word;
}

/// The name of a grown communicator, computed as in NCCL.
[[maybe_unused]] std::uint64_t combined(std::uint64_t base, std::uint64_t value) {
  return Mixed().eat(&base, sizeof base).eat(&value, sizeof value).digest();
}

/// `magic` is the seed for the names of grown communicators.
Communicator* made(int size, std::uint64_t name, int rank, bool blocking, std::uint64_t magic) {
  auto* const comm = new Communicator;
  comm->name = name_of(name);
  comm->rank = rank;
  comm->size = size;
  comm->magic = magic;
  comm->blocking = blocking;
  return comm;
}

int init(void** out, int size, std::uint64_t name, int rank, bool blocking, std::uint64_t magic) {
  if (size < 1 || size > kRanks || rank < 0 || rank >= size) {
    return kInvalidArgument;
  }
  auto* const comm = made(size, name, rank, blocking, magic);
  *out = comm;
  return carry_out_or_hold(comm, [comm] { return join(*comm) ? kSuccess : 1; });
}

/// A communicator made from another one: NCCL writes its handle when it exists, not before.
[[maybe_unused]] int init_child(Communicator& parent, void** out,
                                std::function<Communicator*()> make) {
  *out = nullptr;
  return carry_out_or_hold(&parent, [out, make = std::move(make)] {
    Communicator* const child = make();
    if (child == nullptr) {
      return kSuccess;
    }
    const bool joined = join(*child);
    *out = child;
    return joined ? kSuccess : 1;
  });
}

[[maybe_unused]] bool is_blocking(const void* config) {
  int blocking = 1;
  if (config != nullptr) {
    std::memcpy(&blocking, static_cast<const char*>(config) + 16, sizeof blocking);
  }
  return blocking != 0;
}

}  // namespace

extern "C" {

int ncclGroupStart();
int ncclGroupEnd();

int ncclGetVersion(int* version) {
  *version = NCCL_DOUBLE_VERSION;
  return kSuccess;
}
const char* ncclGetErrorString(int result) {
  return result == kSuccess ? "no error" : "an error";
}
#if NCCL_DOUBLE_VERSION >= 21304
const char* ncclGetLastError(void*) {
  return "";
}
#endif
int ncclGetUniqueId(UniqueId* id) {
  return getrandom(id->bytes, sizeof id->bytes, 0) == sizeof id->bytes ? kSuccess : 2;
}
#if NCCL_DOUBLE_VERSION >= 21403
int ncclCommInitRankConfig(void** comm, int size, UniqueId id, int rank, void* config) {
  return init(comm, size, hash_of(id.bytes, sizeof id.bytes), rank, is_blocking(config),
              first_word(id));
}
#endif
int ncclCommInitRank(void** comm, int size, UniqueId id, int rank) {
  const int result =
      init(comm, size, hash_of(id.bytes, sizeof id.bytes), rank, true, first_word(id));
  if (result == kSuccess) {
    begin_profiling(*static_cast<Communicator*>(*comm),
                    communicator_hash(id.bytes, sizeof id.bytes));
  }
  return result;
}
#if NCCL_DOUBLE_VERSION >= 22304
int ncclCommInitRankScalable(void** comm, int size, int rank, int, UniqueId* ids, void* config) {
  return init(comm, size, hash_of(ids->bytes, sizeof ids->bytes), rank, is_blocking(config),
              first_word(*ids));
}
#endif
int ncclCommCount(void* comm, int* count) {
  if (refuses(static_cast<Communicator*>(comm))) {
    return kInvalidArgument;
  }
  *count = static_cast<Communicator*>(comm)->size;
  return kSuccess;
}
int ncclCommUserRank(void* comm, int* rank) {
  if (refuses(static_cast<Communicator*>(comm))) {
    return kInvalidArgument;
  }
  *rank = static_cast<Communicator*>(comm)->rank;
  return kSuccess;
}
int ncclCommCuDevice(void*, int* device) {
  *device = 0;
  return kSuccess;
}
int ncclCommGetAsyncError(void* comm, int* state) {
  *state = number_from("NCCL_DOUBLE_ASYNC_ERROR", static_cast<Communicator*>(comm)->state.load());
  return kSuccess;
}
#if NCCL_DOUBLE_VERSION >= 21803
int ncclCommSplit(void* parent, int color, int key, void** out, void*) {
  auto& comm = *static_cast<Communicator*>(parent);
  if (refuses(&comm)) {
    return kInvalidArgument;
  }
  const int number = comm.children++ % 64;
  return init_child(comm, out, [&comm, color, key, number]() -> Communicator* {
    comm.shared->color[number][comm.rank] = color;
    comm.shared->key[number][comm.rank] = key;
    barrier(comm);
    if (color < 0) {
      return nullptr;
    }
    int size = 0;
    int rank = 0;
    for (int other = 0; other < comm.size; ++other) {
      if (comm.shared->color[number][other] == color) {
        const int theirs = comm.shared->key[number][other];
        ++size;
        rank += theirs < key || (theirs == key && other < comm.rank) ? 1 : 0;
      }
    }
    const std::uint64_t child[] = {static_cast<std::uint64_t>(number),
                                   static_cast<std::uint64_t>(color)};
    return made(size, hash_of(child, sizeof child, hash_of(comm.name.data(), comm.name.size())),
                rank, comm.blocking, 0);
  });
}
#endif
#if NCCL_DOUBLE_VERSION >= 22703
int ncclCommShrink(void* parent, int* excluded, int count, void** out, void*, int) {
  auto& comm = *static_cast<Communicator*>(parent);
  if (refuses(&comm)) {
    return kInvalidArgument;
  }
  int rank = comm.rank;
  std::uint64_t name = hash_of(comm.name.data(), comm.name.size());
  for (int i = 0; i < count; ++i) {
    rank -= excluded[i] < comm.rank ? 1 : 0;
    name = hash_of(&excluded[i], sizeof excluded[i], name);
  }
  name += static_cast<std::uint64_t>(++comm.children);
  return init_child(comm, out, [&comm, size = comm.size - count, name, rank] {
    return made(size, name, rank, comm.blocking, 0);
  });
}
#endif
#if NCCL_DOUBLE_VERSION >= 21403
int ncclCommFinalize(void* comm) {
  auto* const own = static_cast<Communicator*>(comm);
  return refuses(own) ? kInvalidArgument : carry_out_or_hold(own, [] { return kSuccess; });
}
#endif
int ncclCommDestroy(void*) {
  return kSuccess;  // leaked: its kernels may still run
}
int ncclCommAbort(void* comm) {
  static_cast<Communicator*>(comm)->aborted = true;
  return kSuccess;
}
#if NCCL_DOUBLE_VERSION >= 22703
int ncclCommWindowRegister(void* comm, void* buffer, std::size_t, void** window, int) {
  auto* const own = static_cast<Communicator*>(comm);
  if (refuses(own)) {
    return kInvalidArgument;
  }
  return carry_out_or_hold(own, [own, buffer, window] {
    barrier(*own);
    *window = buffer;
    return kSuccess;
  });
}
int ncclCommWindowDeregister(void*, void*) {
  return kSuccess;
}
#endif
#if NCCL_DOUBLE_VERSION >= 21104
int ncclRedOpCreatePreMulSum(int* op, void*, int, int, void*) {
  *op = 5;
  return kSuccess;
}
int ncclRedOpDestroy(int, void*) {
  return kSuccess;
}
#endif

/// One process with several devices.
int ncclCommInitAll(void** comms, int count, const int*) {
  UniqueId id{};
  ncclGetUniqueId(&id);
  ncclGroupStart();
  for (int rank = 0; rank < count; ++rank) {
    init(&comms[rank], count, hash_of(id.bytes, sizeof id.bytes), rank, true, first_word(id));
  }
  return ncclGroupEnd();
}

#if NCCL_DOUBLE_VERSION >= 22902
int ncclCommGetUniqueId(void* handle, UniqueId* id) {
  const auto& comm = *static_cast<Communicator*>(handle);
  *id = {};
  const std::uint64_t magic = combined(comm.magic, static_cast<std::uint64_t>(comm.children) + 1);
  std::memcpy(id->bytes, &magic, sizeof magic);
  return kSuccess;
}
/// Members pass their communicator and keep their rank; new ranks pass the id that a member made.
int ncclCommGrow(void* handle, int size, const UniqueId* id, int rank, void** out, void* config) {
  auto* const comm = static_cast<Communicator*>(handle);
  if (comm == nullptr ? id == nullptr || rank < 0 : rank != -1) {
    return kInvalidArgument;
  }
  if (comm != nullptr && refuses(comm)) {
    return kInvalidArgument;
  }
  const std::uint64_t magic =
      comm == nullptr ? first_word(*id)
                      : combined(comm->magic, static_cast<std::uint64_t>(++comm->children));
  const std::uint64_t name = combined(magic, static_cast<std::uint64_t>(size));
  if (comm == nullptr) {
    return init(out, size, name, rank, is_blocking(config), magic);
  }
  return init_child(*comm, out, [comm, size, name, magic] {
    return made(size, name, comm->rank, comm->blocking, magic);
  });
}
#endif
}
