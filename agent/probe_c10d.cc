// SPDX-License-Identifier: Apache-2.0
// Collectives and point-to-point operations over gloo, and the store. A composite operation calls
// others: only the outermost counts, so that ranks can be compared call by call.
#include <cstring>

#include "agent/hooks.h"
#include "agent/python_site.h"
#include "agent/recorder.h"

namespace ddpdoctor::agent {
namespace {

constinit thread_local int call_depth = 0;
constinit thread_local std::uint16_t open_group = 0;
constinit thread_local std::uint32_t open_sequence = 0;
constinit thread_local wire::Operation open_operation = wire::Operation::kUnknown;

struct Vector {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t capacity;
};

struct String {  // std::string of the C++11 ABI
  const char* text;
  std::uint64_t length;
};

template <typename T>
const T& as(std::uint64_t address) {
  return *reinterpret_cast<const T*>(address);
}

std::uint16_t group_index(wire::Ring& ring, std::uint64_t backend) {
  const std::uint32_t count = ring.header.groups.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count && i < wire::kGroups; ++i) {
    if (ring.group[i].backend == backend) {
      return static_cast<std::uint16_t>(i + 1);
    }
  }
  const std::uint32_t index = ring.header.groups.fetch_add(1, std::memory_order_acq_rel);
  if (index >= wire::kGroups) {
    ring.header.groups.store(wire::kGroups, std::memory_order_relaxed);
    return 0;
  }
  wire::Group& group = ring.group[index];
  group.group_rank = -1;
  group.size = -1;
  group.backend = backend;
  memcpy(group.backend_name, "gloo", 5);
  return static_cast<std::uint16_t>(index + 1);
}

bool is_point_to_point(wire::Operation operation) {
  return operation == wire::Operation::kSend || operation == wire::Operation::kRecv ||
         operation == wire::Operation::kRecvAny;
}

char* put(char* to, std::int64_t number) {
  char digits[24];
  int count = 0;
  if (number < 0) {
    *to++ = '-';
    number = -number;
  }
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  while (count > 0) {
    *to++ = digits[--count];
  }
  return to;
}

/// "1000x7" interned; shapes beyond eight dimensions are left out.
std::uint32_t shape_text(wire::Ring& ring, const std::int64_t* sizes, std::int64_t dimensions) {
  if (dimensions < 0 || dimensions > 8) {
    return 0;
  }
  char text[8 * 24];
  char* at = text;
  for (std::int64_t i = 0; i < dimensions; ++i) {
    if (i > 0) {
      *at++ = 'x';
    }
    at = put(at, sizes[i]);
  }
  return intern(ring, text, static_cast<std::size_t>(at - text));
}

/// "1000x7|in=3,4|out=5,2": shape and, for all_to_all_single, how it is split.
std::uint32_t splits_text(wire::Ring& ring, const Arguments& arguments) {
  char text[600];
  char* at = text;
  for (const int argument : {5, 4}) {
    const Vector& splits = as<Vector>(arguments.value[argument]);
    const std::uint64_t count = (splits.end - splits.begin) / 8;
    if (count > 12) {
      return 0;
    }
    memcpy(at, argument == 5 ? "|in=" : "|out=", argument == 5 ? 4 : 5);
    at += argument == 5 ? 4 : 5;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i > 0) {
        *at++ = ',';
      }
      at = put(at, as<std::int64_t>(splits.begin + 8 * i));
    }
  }
  return intern(ring, text, static_cast<std::size_t>(at - text));
}

void read_tensor(wire::Ring& ring, const Hook& hook, const Arguments& arguments, Event& event) {
  const TorchFunctions& torch = torch_functions();
  if (hook.tensor_argument < 0) {
    return;
  }
  if (torch.count == nullptr || torch.dtype == nullptr) {
    ring.header.disabled |= wire::kNoTensorFacts;
    return;
  }
  std::uint64_t first = arguments.value[hook.tensor_argument];
  std::uint64_t tensors = 1;
  if (hook.tensor_form == 1) {
    const Vector& vector = as<Vector>(first);
    tensors = (vector.end - vector.begin) / 8;
    first = vector.begin;
  }
  if (tensors == 0 || first == 0 || as<std::uint64_t>(first) == 0) {
    return;
  }
  std::int64_t total = 0;
  for (std::uint64_t i = 0; i < tensors && i < 64; ++i) {
    std::int64_t count = 0;
    if (torch.count(reinterpret_cast<void*>(first + 8 * i), &count) != 0) {
      return;
    }
    total += count;
  }
  event.count = total;
  event.detail |= tensors > 1 ? wire::kTensorsMany : 0;
  std::int32_t dtype = 255;
  if (torch.dtype(reinterpret_cast<void*>(first), &dtype) == 0 && dtype >= 0 && dtype < 255) {
    event.dtype = static_cast<std::uint8_t>(dtype);
  }
  if (hook.operation == wire::Operation::kAllToAllSingle) {
    event.text = splits_text(ring, arguments);
    return;
  }
  std::int64_t dimensions = 0;
  std::int64_t* sizes = nullptr;
  if (torch.dimensions != nullptr && torch.sizes != nullptr &&
      torch.dimensions(reinterpret_cast<void*>(first), &dimensions) == 0 &&
      torch.sizes(reinterpret_cast<void*>(first), &sizes) == 0 && sizes != nullptr) {
    event.text = shape_text(ring, sizes, dimensions);
  }
}

void read_options(const Hook& hook, const Arguments& arguments, Event& event) {
  if (is_point_to_point(hook.operation)) {
    event.peer = hook.operation == wire::Operation::kRecvAny
                     ? -1
                     : static_cast<std::int32_t>(arguments.value[3]);
    return;
  }
  if (hook.options_argument < 0 || !torch_functions().known_layout) {
    return;
  }
  const std::uint64_t options = arguments.value[hook.options_argument];
  if (hook.root_offset >= 0) {
    event.peer = static_cast<std::int32_t>(
        as<std::int64_t>(options + static_cast<std::uint64_t>(hook.root_offset)));
  }
  if (hook.reduce_offset >= 0) {
    event.reduce_op = as<std::uint8_t>(options + static_cast<std::uint64_t>(hook.reduce_offset));
  }
  if (hook.async_offset >= 0 &&
      as<std::uint8_t>(options + static_cast<std::uint64_t>(hook.async_offset)) != 0) {
    event.detail |= wire::kAsync;
  }
}

/// monitoredBarrier has no hidden result pointer: `this` is its first argument.
std::uint64_t backend_of(const Hook& hook, const Arguments& arguments) {
  return arguments.value[hook.operation == wire::Operation::kMonitoredBarrier ? 0 : 1];
}

void remember_version(wire::Ring& ring) {
  if (ring.header.torch_version[0] == 0 && torch_functions().version[0] != 0) {
    memcpy(ring.header.torch_version, torch_functions().version, sizeof ring.header.torch_version);
  }
}

wire::Work& work_slot(wire::Ring& ring, std::uint64_t object) {
  return ring.work[(object >> 4U) * 0x9E3779B1U % wire::kWorks];
}

void ended(wire::Ring& ring, std::uint16_t group, std::uint32_t sequence, wire::Operation operation,
           bool failed) {
  if (group == 0) {
    return;
  }
  wire::Group& entry = ring.group[group - 1];
  const bool peer = is_point_to_point(operation);
  if (!peer && !failed && sequence > entry.completed) {
    entry.completed = sequence;
  }
  entry.last_completed_time = now();
  entry.failed += failed ? 1 : 0;
  record(ring, {.kind = peer ? wire::EventKind::kPointToPoint : wire::EventKind::kCollective,
                .phase = failed ? wire::Phase::kFailed : wire::Phase::kCompleted,
                .operation = operation,
                .group = group,
                .group_sequence = sequence});
}

}  // namespace

bool call_entered(const Hook& hook, const Arguments& arguments) {
  if (call_depth++ > 0) {
    return false;
  }
  wire::Ring* const ring = ring_or_make();
  if (ring == nullptr) {
    return false;
  }
  remember_version(*ring);
  const bool peer = is_point_to_point(hook.operation);
  Event event{.kind = peer ? wire::EventKind::kPointToPoint : wire::EventKind::kCollective,
              .operation = hook.operation};
  event.group = group_index(*ring, backend_of(hook, arguments));
  if (event.group == 0) {
    ring->header.lost.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  wire::Group& group = ring->group[event.group - 1];
  event.group_sequence = peer ? ++group.point_to_point : ++group.enqueued;
  event.object = backend_of(hook, arguments);
  read_tensor(*ring, hook, arguments, event);
  read_options(hook, arguments, event);
  event.site = call_site(*ring);
  open_group = event.group;
  open_sequence = event.group_sequence;
  open_operation = hook.operation;
  const std::uint64_t index = record(*ring, event);
  memcpy(static_cast<void*>(&group.last),
         static_cast<const void*>(&ring->slot[(index - 1) % wire::kSlots]), sizeof group.last);
  group.last_enqueued_time = group.last.time;
  ring->header.collectives.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void call_left(const Hook& hook, const Arguments&, bool counted, bool threw, std::uint64_t result) {
  --call_depth;
  wire::Ring* const ring_now = ring();
  if (!counted || ring_now == nullptr) {
    return;
  }
  const bool blocking = hook.operation == wire::Operation::kMonitoredBarrier;
  if (threw || blocking) {
    ended(*ring_now, open_group, open_sequence, hook.operation, threw);
  } else if (is_point_to_point(hook.operation) && result != 0) {
    // send and recv return their Work in the caller's slot; nobody enqueues it
    const std::uint64_t work = as<std::uint64_t>(result);
    wire::Work& slot = work_slot(*ring_now, work);
    slot.group = open_group;
    slot.group_sequence = open_sequence;
    slot.operation = static_cast<std::uint32_t>(hook.operation);
    slot.object.store(work, std::memory_order_release);
  }
  open_group = 0;
}

void work_event(Meaning meaning, const Arguments& arguments) {
  wire::Ring* const ring_now = ring();
  if (ring_now == nullptr) {
    return;
  }
  if (meaning == Meaning::kEnqueue) {
    // intrusive_ptr by value travels by address; before the real enqueue no worker can have
    // finished it
    const std::uint64_t work = as<std::uint64_t>(arguments.value[1]);
    if (open_group == 0) {
      return;
    }
    wire::Work& slot = work_slot(*ring_now, work);
    slot.group = open_group;
    slot.group_sequence = open_sequence;
    slot.operation = static_cast<std::uint32_t>(open_operation);
    slot.object.store(work, std::memory_order_release);
    return;
  }
  wire::Work& slot = work_slot(*ring_now, arguments.value[0]);
  if (slot.object.load(std::memory_order_acquire) != arguments.value[0]) {
    return;
  }
  slot.object.store(0, std::memory_order_relaxed);
  ended(*ring_now, static_cast<std::uint16_t>(slot.group), slot.group_sequence,
        static_cast<wire::Operation>(slot.operation), meaning == Meaning::kFinishError);
}

void backend_found(const Arguments& arguments, std::uint64_t result) {
  wire::Ring* const ring_now = ring();
  if (ring_now == nullptr || result == 0) {
    return;
  }
  const std::uint64_t backend = as<std::uint64_t>(result);
  const std::uint64_t process_group = arguments.value[1];
  const std::uint16_t index = group_index(*ring_now, backend);
  if (index == 0) {
    return;
  }
  wire::Group& group = ring_now->group[index - 1];
  if (group.process_group == process_group && group.name[0] != 0) {
    return;
  }
  group.process_group = process_group;
  if (torch_functions().group_name != nullptr) {
    const auto* const name = static_cast<const String*>(
        torch_functions().group_name(reinterpret_cast<const void*>(process_group)));
    if (name != nullptr && name->length < sizeof group.name) {
      memcpy(group.name, name->text, name->length);
    }
  }
}

void group_constructed(const Arguments& arguments) {
  wire::Ring* const ring_now = ring_or_make();
  if (ring_now == nullptr) {
    return;
  }
  remember_version(*ring_now);
  const std::uint16_t index = group_index(*ring_now, arguments.value[0]);
  if (index == 0) {
    return;
  }
  wire::Group& group = ring_now->group[index - 1];
  group.group_rank = static_cast<std::int32_t>(arguments.value[2]);
  group.size = static_cast<std::int32_t>(arguments.value[3]);
  group.enqueued = 0;
  group.completed = 0;
  if (index == 1 && ring_now->header.rank < 0) {
    ring_now->header.rank = group.group_rank;  // the first group is the world
    ring_now->header.world_size = group.size;
  }
  record(*ring_now, {.kind = wire::EventKind::kGroupCreated,
                     .site = call_site(*ring_now),
                     .group = index,
                     .count = group.size,
                     .peer = group.group_rank});
}

namespace {
/// The (first) key: get takes a string, wait a vector of strings.
std::uint32_t key_of(wire::Ring& ring, const Hook& hook, const Arguments& arguments) {
  // get returns a vector: rdi is the result, rsi the store, rdx the key; wait returns nothing: rdi
  // the store, rsi the keys
  const std::uint64_t address = hook.meaning == Meaning::kStoreGet
                                    ? arguments.value[2]
                                    : as<Vector>(arguments.value[1]).begin;
  if (hook.meaning == Meaning::kStoreWait &&
      as<Vector>(arguments.value[1]).begin == as<Vector>(arguments.value[1]).end) {
    return 0;
  }
  const String& key = as<String>(address);
  return key.length < 512 ? intern(ring, key.text, key.length) : 0;
}
}  // namespace

void store_entered(const Hook& hook, const Arguments& arguments) {
  wire::Ring* const ring_now = ring_or_make();
  if (ring_now != nullptr) {
    record(*ring_now, {.kind = wire::EventKind::kStore,
                       .phase = wire::Phase::kStarted,
                       .site = call_site(*ring_now),
                       .text = key_of(*ring_now, hook, arguments)});
  }
}

void store_left(const Hook& hook, const Arguments& arguments, bool threw) {
  wire::Ring* const ring_now = ring();
  if (ring_now != nullptr) {
    record(*ring_now, {.kind = wire::EventKind::kStore,
                       .phase = threw ? wire::Phase::kFailed : wire::Phase::kCompleted,
                       .text = threw ? 0 : key_of(*ring_now, hook, arguments)});
  }
}

}  // namespace ddpdoctor::agent
