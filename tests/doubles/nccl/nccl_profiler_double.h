// SPDX-License-Identifier: Apache-2.0
// The double of NCCL calls a profiler plugin as NCCL does: interface 3 in 2.26, 4 in 2.27, 5 before
// 2.30, 6 in 2.30, 7 since 2.31, or the newest older one that the plugin has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "tests/doubles/nccl/nccl_transport.h"

namespace ddpdoctor::doubles {

/// NCCL's hash of bytes, since 2.26.
class Mixed {
 public:
  Mixed& eat(const void* bytes, std::size_t size) {
    a_ ^= size;
    for (std::size_t at = 0; at < size; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, static_cast<const char*>(bytes) + at, size - at < 8 ? size - at : 8);
      a_ += b_;
      b_ ^= a_;
      a_ = (a_ ^ (a_ >> 31)) * 0x9DE62BBC8CEF3CE3U;
      b_ = (b_ ^ (b_ >> 32)) * 0x485CD6311B599E79U;
      a_ += word;
    }
    return *this;
  }
  [[nodiscard]] std::uint64_t digest() const {
    const std::uint64_t h = (a_ ^ (a_ >> 31)) * 0xBAC3BD562846DE6BU + b_;
    return (h ^ (h >> 32)) * 0x995A187A14E7B445U;
  }

 private:
  std::uint64_t a_ = 1;
  std::uint64_t b_ = 1;
};

/// NCCL's own name for a communicator.
inline std::uint64_t communicator_hash(const char* bytes, std::size_t size) {
  return Mixed().eat(bytes, size).digest();
}

struct Plugin {
  const char* name;
  void* init;
  int (*start)(void* context, void** handle, void* event);
  int (*stop)(void* handle);
};

inline constexpr int kNewestInterface = NCCL_DOUBLE_VERSION < 22605   ? 0
                                        : NCCL_DOUBLE_VERSION < 22700 ? 3
                                        : NCCL_DOUBLE_VERSION < 22800 ? 4
                                        : NCCL_DOUBLE_VERSION < 23000 ? 5
                                        : NCCL_DOUBLE_VERSION < 23100 ? 6
                                                                      : 7;

inline void begin_profiling(Communicator& comm, std::uint64_t id) {
  const char* const path = std::getenv("NCCL_PROFILER_PLUGIN");
  void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const Plugin* plugin = nullptr;
  int interface = number_from("NCCL_DOUBLE_INTERFACE", kNewestInterface);
  for (; library != nullptr && interface >= 3; --interface) {
    const std::string symbol = "ncclProfiler_v" + std::to_string(interface);
    plugin = static_cast<const Plugin*>(dlsym(library, symbol.c_str()));
    if (plugin != nullptr) {
      break;
    }
  }
  if (plugin == nullptr) {
    return;
  }
  using V3 = int (*)(void**, int*);
  using V4 = int (*)(void**, int*, const char*, std::uint64_t, int, int, int, void*);
  using V5 = int (*)(void**, std::uint64_t, int*, const char*, int, int, int, void*);
  if (interface == 3) {
    reinterpret_cast<V3>(plugin->init)(&comm.profile, &comm.profiled);
  } else if (interface == 4) {
    reinterpret_cast<V4>(plugin->init)(&comm.profile, &comm.profiled, "", id, 1, comm.size,
                                       comm.rank, nullptr);
  } else {
    reinterpret_cast<V5>(plugin->init)(&comm.profile, id, &comm.profiled, "", 1, comm.size,
                                       comm.rank, nullptr);
  }
  comm.plugin = plugin;
  comm.interface = interface;
  comm.hash = id;
}

/// One call, with the fields of all interfaces.
struct Told {
  const char* function;
  std::size_t count;
  const char* type;
  int root;
  void* stream;
};

struct EventV3 {
  std::uint8_t type;
  void* parent;
  int rank;
  const char* name;
  std::uint64_t hash;
  std::uint64_t sequence;
  const char* function;
  const void* from;
  void* to;
  std::size_t count;
  int root;
  const char* datatype;
  char rest[64];
};
struct EventV4 {
  std::uint8_t type;
  void* parent;
  int rank;
  std::uint64_t sequence;
  const char* function;
  const void* from;
  void* to;
  std::size_t count;
  int root;
  const char* datatype;
  char rest[64];
};
struct EventV5 {
  std::uint64_t type;
  void* parent;
  int rank;
  const char* function;
  std::size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool captured;
  std::uint64_t tag;  // interface 7
  char rest[128];
};

/// Interfaces 3 and 4: a collective is reported only inside a group event that has a handle.
template <typename Event>
void tell_in_group(Communicator& comm, const Plugin& plugin, Event event) {
  Event group{};
  group.type = 1;
  group.rank = comm.rank;
  void* parent = nullptr;
  plugin.start(comm.profile, &parent, &group);
  if (parent == nullptr) {
    return;
  }
  void* told = nullptr;
  event.parent = parent;
  plugin.start(comm.profile, &told, &event);
  if (told != nullptr) {
    plugin.stop(told);
  }
  plugin.stop(parent);
}

inline void profile(void* handle, const Told& call) {
  auto* const comm = static_cast<Communicator*>(handle);
  if (comm == nullptr || comm->plugin == nullptr) {
    return;
  }
  const auto& plugin = *static_cast<const Plugin*>(comm->plugin);
  constexpr int kCollective = 2;
  constexpr int kCollectiveApi = 512;
  if (comm->interface <= 4 && (comm->profiled & kCollective) == 0) {
    return;
  }
  if (comm->interface == 3) {
    tell_in_group(*comm, plugin,
                  EventV3{kCollective,
                          nullptr,
                          comm->rank,
                          "",
                          comm->hash,
                          0,
                          call.function,
                          nullptr,
                          nullptr,
                          call.count,
                          call.root,
                          call.type,
                          {}});
  } else if (comm->interface == 4) {
    tell_in_group(*comm, plugin,
                  EventV4{kCollective,
                          nullptr,
                          comm->rank,
                          0,
                          call.function,
                          nullptr,
                          nullptr,
                          call.count,
                          call.root,
                          call.type,
                          {}});
  } else if ((comm->profiled & kCollectiveApi) != 0) {
    EventV5 event{kCollectiveApi, nullptr,   comm->rank, call.function,
                  call.count,     call.type, call.root,  call.stream,
                  false,          0,         {}};
    void* told = nullptr;
    plugin.start(comm->profile, &told, &event);
    if (told != nullptr) {
      plugin.stop(told);
    }
  }
}

}  // namespace ddpdoctor::doubles
