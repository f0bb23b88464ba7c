// SPDX-License-Identifier: Apache-2.0
// The double of NCCL asks a profiler plugin as NCCL does: interface 4 before 2.28, 5 before 2.30, 6
// from then on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "tests/doubles/nccl/nccl_transport.h"

namespace ddpdoctor::doubles {

/// NCCL's own name of a communicator.
inline std::uint64_t communicator_hash(const char* bytes, std::size_t size) {
  std::uint64_t a = 1 ^ size;
  std::uint64_t b = 1;
  for (std::size_t at = 0; at < size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, size - at < 8 ? size - at : 8);
    a += b;
    b ^= a;
    a = (a ^ (a >> 31)) * 0x9DE62BBC8CEF3CE3U;
    b = (b ^ (b >> 32)) * 0x485CD6311B599E79U;
    a += word;
  }
  std::uint64_t h = (a ^ (a >> 31)) * 0xBAC3BD562846DE6BU + b;
  return (h ^ (h >> 32)) * 0x995A187A14E7B445U;
}

struct Plugin {
  const char* name;
  void* init;
  int (*start)(void* context, void** handle, void* event);
  int (*stop)(void* handle);
};

inline constexpr int kPluginVersion = NCCL_DOUBLE_VERSION < 22800   ? 4
                                      : NCCL_DOUBLE_VERSION < 23000 ? 5
                                                                    : 6;

inline void begin_profiling(Communicator& comm, std::uint64_t id) {
  const char* const path = std::getenv("NCCL_PROFILER_PLUGIN");
  void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const std::string symbol = "ncclProfiler_v" + std::to_string(kPluginVersion);
  const auto* const plugin =
      library == nullptr ? nullptr : static_cast<const Plugin*>(dlsym(library, symbol.c_str()));
  if (plugin == nullptr) {
    return;
  }
  using V4 = int (*)(void**, int*, const char*, std::uint64_t, int, int, int, void*);
  using V5 = int (*)(void**, std::uint64_t, int*, const char*, int, int, int, void*);
  if (kPluginVersion == 4) {
    reinterpret_cast<V4>(plugin->init)(&comm.profile, &comm.profiled, "", id, 1, comm.size,
                                       comm.rank, nullptr);
  } else {
    reinterpret_cast<V5>(plugin->init)(&comm.profile, id, &comm.profiled, "", 1, comm.size,
                                       comm.rank, nullptr);
  }
  comm.plugin = plugin;
}

/// A collective is told once, in the way of the version.
inline void profile(void* handle, const char* function, std::size_t count, const char* type,
                    int root, void* stream) {
  auto* const comm = static_cast<Communicator*>(handle);
  if (comm == nullptr || comm->plugin == nullptr) {
    return;
  }
  struct V4 {
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
  struct V5 {
    std::uint64_t type;
    void* parent;
    int rank;
    const char* function;
    std::size_t count;
    const char* datatype;
    int root;
    void* stream;
    bool captured;
    char rest[128];
  };
  void* told = nullptr;
  const auto* const plugin = static_cast<const Plugin*>(comm->plugin);
  if (kPluginVersion == 4 && (comm->profiled & 2) != 0) {
    V4 event{.type = 2,
             .parent = nullptr,
             .rank = comm->rank,
             .sequence = 0,
             .function = function,
             .from = nullptr,
             .to = nullptr,
             .count = count,
             .root = root,
             .datatype = type,
             .rest = {}};
    plugin->start(comm->profile, &told, &event);
  } else if (kPluginVersion > 4 && (comm->profiled & 512) != 0) {
    V5 event{.type = 512,
             .parent = nullptr,
             .rank = comm->rank,
             .function = function,
             .count = count,
             .datatype = type,
             .root = root,
             .stream = stream,
             .captured = false,
             .rest = {}};
    plugin->start(comm->profile, &told, &event);
  }
  if (told != nullptr) {
    plugin->stop(told);
  }
}

}  // namespace ddpdoctor::doubles
