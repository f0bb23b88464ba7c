// SPDX-License-Identifier: Apache-2.0
#include "agent/nccl/nccl_calls.h"

#include <atomic>
#include <cstring>

#include "agent/hooks.h"
#include "agent/inside.h"
#include "agent/record/native_site.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent::nccl {
namespace {

constinit thread_local int depth = 0;

/// NCCL's ncclDataType_t as c10::ScalarType.
constexpr std::uint8_t kTypes[] = {1, 0, 3, 28, 4, 29, 5, 6, 7, 15, 24, 23};
/// ncclRedOp_t as c10d::ReduceOp; an operation created by the program is premul_sum.
constexpr std::uint8_t kReduceOps[] = {0, 2, 4, 3, 1};
constexpr std::uint8_t kUserOp = 8;
constexpr std::uint8_t kUnknownByte = 255;

std::uint8_t type_of(int type) {
  return type >= 0 && type < static_cast<int>(sizeof kTypes) ? kTypes[type] : kUnknownByte;
}

std::uint8_t reduce_op_of(int op) {
  if (op < 0) {
    return kUnknownByte;
  }
  return op < static_cast<int>(sizeof kReduceOps) ? kReduceOps[op] : kUserOp;
}

bool is_message(wire::Operation operation) {
  using enum wire::Operation;
  return operation == kSend || operation == kRecv || operation == kPutSignal ||
         operation == kSignal || operation == kWaitSignal;
}

/// Assigns a number and writes the call; the end will be recorded in the same slot.
std::uint64_t write_call(wire::Ring& ring, Event& event, bool point_to_point) {
  wire::Group& group = ring.group[event.group - 1];
  event.kind = point_to_point ? wire::EventKind::kPointToPoint : wire::EventKind::kCollective;
  event.group_sequence = std::atomic_ref(point_to_point ? group.point_to_point : group.enqueued)
                             .fetch_add(1, std::memory_order_relaxed) +
                         1;
  event.site = call_site(ring);
  if (event.site == 0) {
    event.site = native_site(ring, called_from);
  }
  const std::uint64_t index = record(ring, event);
  memcpy(static_cast<void*>(&group.last),
         static_cast<const void*>(&ring.slot[(index - 1) % wire::kSlots]), sizeof group.last);
  group.last_enqueued_time = group.last.time;
  ring.header.collectives.fetch_add(1, std::memory_order_relaxed);
  return index;
}

/// The span of a single written call.
Span span_of(const Event& event, std::uint64_t index, bool point_to_point) {
  return {.group = event.group,
          .point_to_point = point_to_point,
          .operation = event.operation,
          .first = event.group_sequence,
          .last = event.group_sequence,
          .first_index = index,
          .last_index = index};
}

}  // namespace

bool is_nested() {
  return depth > 0;
}

Around::Around(const Library& library, const Call& call)
    : communicator_(call.communicator), stream_(call.stream) {
  if (depth++ > 0 || switched_off || c10d_call_is_open()) {
    return;
  }
  wire::Ring* const ring = ring_or_make();
  if (ring == nullptr) {
    return;
  }
  const Known* const known = communicator(*ring, library, call.communicator);
  if (known == nullptr) {
    return;
  }
  const bool grouped = group_is_open();
  const bool message = is_message(call.operation);
  Event event{.operation = call.operation,
              .group = known->group,
              .dtype = type_of(call.type),
              .reduce_op = reduce_op_of(call.reduce_op),
              .object = reinterpret_cast<std::uint64_t>(call.stream),
              .count = call.count,
              .peer = call.root,
              .detail = wire::kOnStream | (grouped ? wire::kGrouped : 0U)};
  asked_ = asked_now();
  const std::uint64_t index = write_call(*ring, event, message);
  span_ = span_of(event, index, message);
  ring_ = ring;
  if (!grouped) {
    const Inside inside;
    pair_ = begin_pair(stream_);
  }
}

Around::~Around() {
  --depth;
}

Result Around::with(Result result) {
  if (ring_ == nullptr) {
    return result;
  }
  const Inside inside;
  const bool launched = result == kSuccess || result == kInProgress;
  if (launched) {  // NCCL refuses calls on a communicator in progress
    answered(*ring_, communicator_, kSuccess, asked_);
  }
  const Launched call{.communicator = communicator_, .span = span_, .stream = stream_};
  if (launched && group_is_open()) {
    hold(*ring_, call);
  } else {
    launch_ended(*ring_, call, pair_, result);
  }
  return result;
}

AroundHost::AroundHost(const Library& library, std::uint64_t id, int rank, int size,
                       std::uint64_t magic, Communicator parent)
    : communicator_(parent) {
  child_ = {.library = &library, .id = id, .magic = magic, .rank = rank, .size = size};
  if (depth++ > 0 || switched_off) {
    return;
  }
  ring_ = ring_or_make();
  if (ring_ != nullptr) {
    child_.group = new_group(*ring_, library, id, rank, size);
    write(wire::Operation::kCommunicatorInit, child_.group);
  }
}

AroundHost::AroundHost(const Library& library, wire::Operation operation, Communicator handle)
    : communicator_(handle) {
  child_.library = &library;
  if (depth++ > 0 || switched_off) {
    return;
  }
  ring_ = ring_or_make();
  if (ring_ != nullptr) {
    const Known* const known = communicator(*ring_, library, handle);
    write(operation, known == nullptr ? 0 : known->group);
  }
}

AroundHost::~AroundHost() {
  --depth;
}

void AroundHost::write(wire::Operation operation, std::uint16_t group) {
  if (group == 0) {
    ring_ = nullptr;
    return;
  }
  Event event{.operation = operation, .group = group};
  const std::uint64_t index = write_call(*ring_, event, false);
  span_ = span_of(event, index, false);
}

Result AroundHost::with(Result result) {
  if (ring_ == nullptr) {
    return result;
  }
  const Inside inside;
  const Hosted call{.communicator = communicator_, .span = span_, .child = child_};
  if (group_is_open() && (result == kSuccess || result == kInProgress)) {
    hold(*ring_, call);
  } else {
    host_call_ended(*ring_, call, result);
  }
  return result;
}

Result AroundHost::with(Result result, const Communicator* made) {
  child_.made = made;
  return with(result);
}

Result AroundHost::with_split(Result result, std::uint64_t id, const Communicator* made) {
  child_.id = id;
  child_.magic = id;
  return with(result, made);
}

void record_told(wire::Ring& ring, std::uint16_t group, const Call& call, std::uint8_t dtype,
                 bool captured) {
  Event event{.operation = call.operation,
              .group = group,
              .dtype = dtype,
              .object = reinterpret_cast<std::uint64_t>(call.stream),
              .count = call.count,
              .peer = call.root,
              .detail = wire::kOnStream | (captured ? wire::kCaptured : 0U)};
  called_from = nullptr;
  write_call(ring, event, is_message(call.operation));
}

}  // namespace ddpdoctor::agent::nccl
