// SPDX-License-Identifier: Apache-2.0
// The alternative source: NCCL calls a profiler plugin for every call
// (NCCL_PROFILER_PLUGIN=…/libddpdoctor_agent.so), even if it is linked statically with hidden
// names. Versions 3 to 7 of the interface (NCCL 2.26 to 2.32). A communicator that is already
// interposed is declined, so that nothing is recorded twice. The interface reports neither reduce
// op nor end.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "agent/inside.h"
#include "agent/nccl/nccl_calls.h"
#include "agent/record/group_table.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent::nccl {
namespace {

enum EventType : std::uint64_t {
  kGroup = 1U << 0U,
  kCollective = 1U << 1U,
  kMessage = 1U << 2U,
  kCollectiveApi = 1U << 9U
};

struct Message {
  const char* function;
  void* buffer;
  const char* type;
  std::size_t count;
  int root;  // the peer
};

/// Versions 3 and 4.
struct OldCollective {
  std::uint64_t sequence;
  const char* function;
  const void* from;
  void* to;
  std::size_t count;
  int root;
  const char* type;
};

/// Versions 5 to 7: later fields follow these.
struct Collective {
  const char* function;
  std::size_t count;
  const char* type;
  int root;
  Stream stream;
  bool captured;
};

/// NCCL's description of an event; in versions 3 and 4 only the first byte of `type` is valid.
/// Version 3 names the communicator in every event instead of at its beginning.
struct EventV3 {
  std::uint8_t type;
  void* parent;
  int rank;
  const char* communicator_name;
  std::uint64_t communicator;
  union {
    OldCollective collective;
    Message message;
  };
};

struct EventV4 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    OldCollective collective;
    Message message;
  };
};

struct EventV5 {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    Collective collective;
    Message message;
  };
};
static_assert(offsetof(EventV3, communicator) == 32 && offsetof(EventV3, collective) == 40);
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

/// The context that NCCL stores for us is the group's number; null = declined.
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

template <typename Told>
void tell(void* context, const Told& told) {
  const Inside inside;
  wire::Ring* const ring_now = ring();
  const auto group = static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(context));
  Call call{.operation = static_cast<wire::Operation>(value_of(told.function, kFunctionNames, 0)),
            .count = static_cast<std::int64_t>(told.count),
            .root = told.root};
  bool captured = false;
  if constexpr (requires { told.stream; }) {
    call.stream = told.stream;
    captured = told.captured;
  }
  if (ring_now != nullptr && group != 0 && call.operation != kUnknown) {
    record_told(*ring_now, group, call, value_of(told.type, kTypeNames, 255), captured);
  }
}

/// `collective` is the type that this version uses for collectives.
template <typename Event>
void tell_event(void* context, const Event& event, EventType collective) {
  if (event.type == collective) {
    tell(context, event.collective);
  } else if (event.type == kMessage) {
    tell(context, event.message);
  }
}

/// Version 3: maps an event's hash to its communicator. Group 0 = declined.
struct Announced {
  std::atomic<std::uint64_t> id;
  std::atomic<std::uint32_t> group;  // index + 1
};
constexpr int kAnnounced = 64;
constinit Announced announced[kAnnounced]{};

void* context_of(std::uint64_t id, int rank) {
  const Inside inside;
  wire::Ring* const ring_now = ring();
  if (ring_now == nullptr || id == 0) {
    return nullptr;
  }
  for (Announced& one : announced) {
    std::uint64_t seen = one.id.load(std::memory_order_acquire);
    if (seen == 0 && one.id.compare_exchange_strong(seen, id, std::memory_order_acq_rel)) {
      const bool ours = known_by_name(*ring_now, id);
      one.group.store(1U + (ours ? 0U : new_group(*ring_now, Library{}, id, rank, -1)),
                      std::memory_order_release);
      seen = id;
    }
    if (seen == id) {  // group 0 while another thread registers it: that one call is lost
      const std::uint32_t group = one.group.load(std::memory_order_acquire);
      return reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr): never followed
          static_cast<std::uintptr_t>(group == 0 ? 0 : group - 1));
    }
  }
  return nullptr;
}

/// NCCL 2.26 and 2.27 report collectives only if their group event got a handle.
void* group_handle() {
  return announced;
}

int init_v3(void** context, int* mask) {
  const Inside inside;
  *context = nullptr;
  *mask = ring_or_make() == nullptr ? 0 : static_cast<int>(kCollective | kMessage);
  return kSuccess;
}

int init_v4(void** context, int* mask, const char*, std::uint64_t id, int, int size, int rank,
            void*) {
  return begin(context, mask, kCollective | kMessage, id, size, rank);
}

int init_v5(void** context, std::uint64_t id, int* mask, const char*, int, int size, int rank,
            void*) {
  return begin(context, mask, kCollectiveApi | kMessage, id, size, rank);
}

int start_v3(void*, void** handle, EventV3* event) {
  *handle = event->type == kGroup ? group_handle() : nullptr;
  if (event->type == kCollective || event->type == kMessage) {
    tell_event(context_of(event->communicator, event->rank), *event, kCollective);
  }
  return kSuccess;
}

int start_v4(void* context, void** handle, EventV4* event) {
  *handle = event->type == kGroup ? group_handle() : nullptr;
  tell_event(context, *event, kCollective);
  return kSuccess;
}

int start_v5(void* context, void** handle, EventV5* event) {
  *handle = nullptr;
  tell_event(context, *event, kCollectiveApi);
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
  void* later[4];  // functions of later interface versions are absent
};

template <auto* kInit, auto* kStart>
constexpr Plugin<std::remove_pointer_t<decltype(kInit)>, std::remove_pointer_t<decltype(kStart)>>
    kPlugin = {.name = "ddpdoctor",
               .init = kInit,
               .start = kStart,
               .stop = stop,
               .change = change,
               .finalize = finalize_plugin,
               .later = {}};

constexpr auto kInterface3 = kPlugin<init_v3, start_v3>;
constexpr auto kInterface4 = kPlugin<init_v4, start_v4>;
constexpr auto kInterface5 = kPlugin<init_v5, start_v5>;

}  // namespace

/// Not exported, so that no program finds an interface of NCCL that it would not have without us:
/// NCCL gets it through dlsym (slots/lookups.cc).
const void* profiler_plugin(const char* name) {
  constexpr char kStart[] = "ncclProfiler_v";
  constexpr std::size_t kLength = sizeof kStart - 1;
  if (strncmp(name, kStart, kLength) != 0 || name[kLength] == 0 || name[kLength + 1] != 0) {
    return nullptr;
  }
  switch (name[kLength]) {
    case '3':
      return &kInterface3;
    case '4':
      return &kInterface4;
    case '5':
    case '6':
    case '7':
      return &kInterface5;
    default:
      return nullptr;
  }
}

}  // namespace ddpdoctor::agent::nccl
