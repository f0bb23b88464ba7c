// SPDX-License-Identifier: Apache-2.0
// The other way in: NCCL asks a profiler plugin about every call
// (NCCL_PROFILER_PLUGIN=…/libddpdoctor_agent.so), also where it is linked statically and its names
// are hidden. Versions 4 to 6 of the interface (NCCL 2.27 to 2.30; later ones fall back to 6). A
// communicator that we stand in front of anyway is declined, so nothing is recorded twice. It tells
// no reduce op and no end.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "agent/group_table.h"
#include "agent/inside.h"
#include "agent/nccl_calls.h"
#include "agent/recorder.h"

namespace ddpdoctor::agent::nccl {
namespace {

enum Type : std::uint64_t {
  kCollective = 1U << 1U,
  kMessage = 1U << 2U,
  kCollectiveApi = 1U << 9U
};

struct Message {
  const char* function;
  void* buffer;
  const char* type;
  std::size_t count;
  int peer;
};

/// What NCCL says of an event; the first byte of `type` is all of it in version 4.
struct EventV4 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      std::uint64_t sequence;
      const char* function;
      const void* from;
      void* to;
      std::size_t count;
      int root;
      const char* type;
    } collective;
    Message message;
  };
};

struct EventV5 {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    struct {
      const char* function;
      std::size_t count;
      const char* type;
      int root;
      void* stream;
      bool captured;
    } collective;
    Message message;
  };
};
static_assert(offsetof(EventV4, collective) == 24 && offsetof(EventV5, collective) == 24);

struct Named {
  const char* name;
  std::uint8_t value;
};

constexpr Named kTypeNames[] = {
    {"ncclInt8", 1},    {"ncclUint8", 0},     {"ncclInt32", 3},       {"ncclUint32", 28},
    {"ncclInt64", 4},   {"ncclUint64", 29},   {"ncclFloat16", 5},     {"ncclFloat32", 6},
    {"ncclFloat64", 7}, {"ncclBfloat16", 15}, {"ncclFloat8e4m3", 24}, {"ncclFloat8e5m2", 23}};

using enum wire::Operation;
constexpr Named kFunctionNames[] = {{"AllReduce", static_cast<std::uint8_t>(kAllReduce)},
                                    {"Broadcast", static_cast<std::uint8_t>(kBroadcast)},
                                    {"Reduce", static_cast<std::uint8_t>(kReduce)},
                                    {"AllGather", static_cast<std::uint8_t>(kAllGather)},
                                    {"ReduceScatter", static_cast<std::uint8_t>(kReduceScatter)},
                                    {"AlltoAll", static_cast<std::uint8_t>(kAllToAll)},
                                    {"Gather", static_cast<std::uint8_t>(kGather)},
                                    {"Scatter", static_cast<std::uint8_t>(kScatter)},
                                    {"Send", static_cast<std::uint8_t>(kSend)},
                                    {"Recv", static_cast<std::uint8_t>(kRecv)}};

template <std::size_t N>
std::uint8_t value_of(const char* name, const Named (&table)[N], std::uint8_t otherwise) {
  for (const Named& one : table) {
    if (name != nullptr && strcmp(one.name, name) == 0) {
      return one.value;
    }
  }
  return otherwise;
}

/// The context that NCCL keeps for us is the group's number; null = declined.
int begin(void** context, int* mask, std::uint64_t wanted, std::uint64_t id, int size, int rank) {
  const Inside inside;
  *context = nullptr;
  *mask = 0;
  wire::Ring* const ring_now = ring_or_make();
  if (ring_now == nullptr || known_by_name(*ring_now, id)) {
    return kSuccess;
  }
  const std::uint16_t group = new_group(*ring_now, Library{}, id, rank, size);
  *context = reinterpret_cast<void*>(
      static_cast<std::uintptr_t>(group));  // NOLINT(performance-no-int-to-ptr): never followed
  *mask = group == 0 ? 0 : static_cast<int>(wanted);
  return kSuccess;
}

void tell(void* context, const char* function, Call call, const char* type, bool captured) {
  const Inside inside;
  wire::Ring* const ring_now = ring();
  const auto group = static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(context));
  call.operation = static_cast<wire::Operation>(value_of(function, kFunctionNames, 0));
  if (ring_now != nullptr && group != 0 && call.operation != kUnknown) {
    record_told(*ring_now, group, call, value_of(type, kTypeNames, 255), captured);
  }
}

int init_v4(void** context, int* mask, const char*, std::uint64_t id, int, int size, int rank,
            void*) {
  return begin(context, mask, kCollective | kMessage, id, size, rank);
}

int init_v5(void** context, std::uint64_t id, int* mask, const char*, int, int size, int rank,
            void*) {
  return begin(context, mask, kCollectiveApi | kMessage, id, size, rank);
}

int start_v4(void* context, void** handle, EventV4* event) {
  *handle = nullptr;
  if (event->type == kCollective) {
    const auto& told = event->collective;
    tell(context, told.function,
         {.count = static_cast<std::int64_t>(told.count), .root = told.root}, told.type, false);
  } else if (event->type == kMessage) {
    const Message& told = event->message;
    tell(context, told.function,
         {.count = static_cast<std::int64_t>(told.count), .root = told.peer}, told.type, false);
  }
  return kSuccess;
}

int start_v5(void* context, void** handle, EventV5* event) {
  *handle = nullptr;
  if (event->type == kCollectiveApi) {
    const auto& told = event->collective;
    tell(context, told.function,
         {.stream = told.stream, .count = static_cast<std::int64_t>(told.count), .root = told.root},
         told.type, told.captured);
  } else if (event->type == kMessage) {
    const Message& told = event->message;
    tell(context, told.function,
         {.count = static_cast<std::int64_t>(told.count), .root = told.peer}, told.type, false);
  }
  return kSuccess;
}

int stop(void*) {
  return kSuccess;
}
int change(void*, int, void*) {
  return kSuccess;
}
int finalize_plugin(void*) {
  return kSuccess;
}

template <typename Init, typename Start>
struct Plugin {
  const char* name;
  Init* init;
  Start* start;
  int (*stop)(void*);
  int (*change)(void*, int, void*);
  int (*finalize)(void*);
};

}  // namespace

extern "C" {
EXPORT extern const Plugin<decltype(init_v4), decltype(start_v4)> ncclProfiler_v4;
EXPORT extern const Plugin<decltype(init_v5), decltype(start_v5)> ncclProfiler_v5;
EXPORT extern const Plugin<decltype(init_v5), decltype(start_v5)> ncclProfiler_v6;
const Plugin<decltype(init_v4), decltype(start_v4)> ncclProfiler_v4 = {
    "ddpdoctor", init_v4, start_v4, stop, change, finalize_plugin};
const Plugin<decltype(init_v5), decltype(start_v5)> ncclProfiler_v5 = {
    "ddpdoctor", init_v5, start_v5, stop, change, finalize_plugin};
const Plugin<decltype(init_v5), decltype(start_v5)> ncclProfiler_v6 = {
    "ddpdoctor", init_v5, start_v5, stop, change, finalize_plugin};
}

}  // namespace ddpdoctor::agent::nccl
