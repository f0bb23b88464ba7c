// SPDX-License-Identifier: Apache-2.0
// Collectives and point-to-point operations over gloo. A composite operation calls others: only the
// outermost counts, so that ranks can be compared call by call.
#include <atomic>
#include <cstring>

#include "agent/c10d/tensor_facts.h"
#include "agent/c10d/torch_objects.h"
#include "agent/c10d/torch_options.h"
#include "agent/hooks.h"
#include "agent/record/decimal.h"
#include "agent/record/group_table.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

constinit thread_local int call_depth = 0;
constinit thread_local std::uint16_t open_group = 0;
constinit thread_local std::uint32_t open_sequence = 0;
constinit thread_local wire::Operation open_operation = wire::Operation::kUnknown;

bool is_point_to_point(wire::Operation operation) {
  return operation == wire::Operation::kSend || operation == wire::Operation::kRecv ||
         operation == wire::Operation::kRecvAny;
}

/// "1000x7", interned; shapes with more than eight dimensions are omitted.
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
    at = put_decimal(at, sizes[i]);
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
      at = put_decimal(at, as<std::int64_t>(splits.begin + 8 * i));
    }
  }
  return intern(ring, text, static_cast<std::size_t>(at - text));
}

/// Clears or sets the bit in the header that marks a fact as not recorded.
void say_unless(wire::Ring& ring, bool told, std::uint32_t bit) {
  ring.header.disabled = told ? ring.header.disabled & ~bit : ring.header.disabled | bit;
}

void read_tensor(wire::Ring& ring, const Hook& hook, const Arguments& arguments, Event& event) {
  if (hook.tensor_argument < 0) {
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
  const TensorFacts facts = tensor_facts(first);
  say_unless(ring, tensors_tell(), wire::kNoTensorFacts);
  std::int64_t total = facts.count;
  for (std::uint64_t i = 1; i < tensors && i < 64 && total >= 0; ++i) {
    const std::int64_t count = tensor_facts(first + 8 * i).count;
    total = count < 0 ? -1 : total + count;
  }
  if (total < 0) {
    return;
  }
  event.count = total;
  event.detail |= tensors > 1 ? wire::kTensorsMany : 0;
  event.dtype = facts.dtype;
  if (hook.operation == wire::Operation::kAllToAllSingle) {
    event.text = splits_text(ring, arguments);
  } else if (facts.sizes != nullptr) {
    event.text = shape_text(ring, facts.sizes, facts.dimensions);
  }
}

void read_options(wire::Ring& ring, const Hook& hook, const Arguments& arguments, Event& event) {
  if (is_point_to_point(hook.operation)) {
    event.peer = hook.operation == wire::Operation::kRecvAny
                     ? -1
                     : static_cast<std::int32_t>(arguments.value[3]);
    return;
  }
  if (hook.options_argument >= 0) {
    const OptionFacts facts = option_facts(hook, arguments.value[hook.options_argument],
                                           ring.group[event.group - 1].size);
    event.reduce_op = facts.reduce_op;
    event.peer = facts.root;
    ring.header.disabled |= facts.unproven;
    if (facts.reduce_op != kUnknownReduceOp) {
      say_unless(ring, true, wire::kNoReduceOps);
    }
  }
}

/// monitoredBarrier has no hidden result pointer: `this` is its first argument.
std::uint64_t backend_of(const Hook& hook, const Arguments& arguments) {
  return arguments.value[hook.operation == wire::Operation::kMonitoredBarrier ? 0 : 1];
}

constexpr std::uint32_t kWorkTries = 16;

wire::Work& work_slot(wire::Ring& ring, std::uint64_t object, std::uint32_t attempt) {
  return ring.work[((object >> 4U) * 0x9E3779B1U + attempt) % wire::kWorks];
}

/// Connects a Work with the open call of this thread. Works for which no thread waits stay in the
/// table: the home slot is then reused.
void remember_work(wire::Ring& ring, std::uint64_t object, wire::Operation operation) {
  wire::Work* chosen = &work_slot(ring, object, 0);
  for (std::uint32_t i = 0; i < kWorkTries; ++i) {
    wire::Work& slot = work_slot(ring, object, i);
    std::uint64_t seen = slot.object.load(std::memory_order_acquire);
    if (seen == object ||
        (seen == 0 && slot.object.compare_exchange_strong(seen, 1, std::memory_order_acq_rel))) {
      chosen = &slot;
      break;
    }
  }
  chosen->group = open_group;
  chosen->group_sequence = open_sequence;
  chosen->operation = static_cast<std::uint32_t>(operation);
  chosen->object.store(object, std::memory_order_release);
}

void ended(wire::Ring& ring, std::uint16_t group, std::uint32_t sequence, wire::Operation operation,
           bool failed) {
  if (group == 0) {
    return;
  }
  wire::Group& entry = ring.group[group - 1];
  const bool peer = is_point_to_point(operation);
  const std::atomic_ref<std::uint32_t> completed(entry.completed);
  std::uint32_t before = completed.load(std::memory_order_relaxed);
  while (!peer && !failed && sequence > before &&
         !completed.compare_exchange_weak(before, sequence, std::memory_order_relaxed)) {
  }
  if (failed) {
    std::atomic_ref(entry.failed).fetch_add(1, std::memory_order_relaxed);
  }
  const std::uint64_t index =
      record(ring, {.kind = peer ? wire::EventKind::kPointToPoint : wire::EventKind::kCollective,
                    .phase = failed ? wire::Phase::kFailed : wire::Phase::kCompleted,
                    .operation = operation,
                    .group = group,
                    .group_sequence = sequence});
  entry.last_completed_time = ring.slot[(index - 1) % wire::kSlots].time;
}

/// Records once how the call of a Work ended.
void work_ended(wire::Ring& ring, std::uint64_t object, bool failed) {
  for (std::uint32_t i = 0; i < kWorkTries; ++i) {
    wire::Work& slot = work_slot(ring, object, i);
    if (slot.object.load(std::memory_order_acquire) == object) {
      const auto group = static_cast<std::uint16_t>(slot.group);
      const std::uint32_t sequence = slot.group_sequence;
      const auto operation = static_cast<wire::Operation>(slot.operation);
      std::uint64_t expected = object;
      if (group <= wire::kGroups &&
          slot.object.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) {
        ended(ring, group, sequence, operation, failed);
      }
      return;
    }
  }
}

}  // namespace

bool c10d_call_is_open() {
  return call_depth > 0 && open_group != 0;
}

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
  event.group_sequence = std::atomic_ref(peer ? group.point_to_point : group.enqueued)
                             .fetch_add(1, std::memory_order_relaxed) +
                         1;
  event.object = backend_of(hook, arguments);
  read_tensor(*ring, hook, arguments, event);
  read_options(*ring, hook, arguments, event);
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
    // send and recv return their Work in the caller's slot; it is not enqueued
    if (const auto work = as<std::uint64_t>(result); work != 0) {
      remember_work(*ring_now, work, hook.operation);
    }
  }
  open_group = 0;
}

void work_event(Meaning meaning, const Arguments& arguments) {
  wire::Ring* const ring_now = ring();
  if (ring_now == nullptr) {
    return;
  }
  if (meaning != Meaning::kEnqueue) {
    work_ended(*ring_now, arguments.value[0], meaning == Meaning::kFinishError);
    return;
  }
  // An intrusive_ptr passed by value is passed by address; no worker can have finished it before
  // the real enqueue. The checks of DETAIL's wrapper use their own group and are not the call.
  const std::uint16_t group = known_group(*ring_now, arguments.value[0]);
  const bool checks = group != 0 && ring_now->group[group - 1].checks != 0;
  if (open_group != 0 && !checks) {
    remember_work(*ring_now, as<std::uint64_t>(arguments.value[1]), open_operation);
  }
}

/// send and recv count as completed when a wait for them has returned.
void message_waited(const Arguments& arguments, bool threw, bool completed) {
  if (wire::Ring* const ring_now = ring(); ring_now != nullptr) {
    work_ended(*ring_now, arguments.value[0], threw || !completed);
  }
}

}  // namespace ddpdoctor::agent
