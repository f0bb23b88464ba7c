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

/// Calls of an open group: they reach the GPU at its end.
struct Held {
  wire::Slot* slot;
  std::uint64_t index;
  Stream stream;
  Span span;
};
/// Communicators that exist at the end of the group.
struct Coming {
  const Communicator* made;
  std::uint64_t id;
  std::uint64_t magic;
  int rank;
  int size;
  Span span;
};
constexpr int kHeld = 96;
constexpr int kComing = 16;
constexpr int kStreams = 8;
struct OpenGroup {
  int depth = 0;
  int held_count = 0;
  int coming_count = 0;
  int streams = 0;
  Held held[kHeld];
  Coming coming[kComing];
  Stream stream[kStreams];
  Pair pair[kStreams];
};
constinit thread_local OpenGroup open_group{};

/// NCCL's ncclDataType_t as c10::ScalarType.
constexpr std::uint8_t kTypes[] = {1, 0, 3, 28, 4, 29, 5, 6, 7, 15, 24, 23};
/// ncclRedOp_t as c10d::ReduceOp; what a program made itself is premul_sum.
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

/// Numbers and writes the call; the slot is where its end will be noted.
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

/// Adds a bit to a call that stands in the ring already, unless it was overwritten.
void note(wire::Ring& ring, wire::Slot& slot, std::uint64_t index, std::uint32_t bit) {
  if (slot.sequence.load(std::memory_order_acquire) != index) {
    return;
  }
  std::atomic_ref(slot.detail).fetch_or(bit, std::memory_order_relaxed);
  if (slot.group > 0 && slot.group <= wire::kGroups) {
    wire::Slot& last = ring.group[slot.group - 1].last;
    if (last.group_sequence == slot.group_sequence && last.kind == slot.kind) {
      last.detail |= bit;
    }
  }
}

constinit std::atomic<std::uint32_t> captured_calls{0};

void note_captured(wire::Ring& ring, wire::Slot& slot, std::uint64_t index) {
  note(ring, slot, index, wire::kCaptured);
  captured_calls.fetch_add(1, std::memory_order_relaxed);
}

/// The communicator is there: its group gets its handle.
void arrived(wire::Ring& ring, const Coming& coming, bool in_background) {
  Known* const known =
      remember(ring, *coming.made, coming.id, coming.span.group, coming.rank, coming.size);
  if (known != nullptr) {
    known->magic = coming.magic;
    known->init_sequence = in_background ? coming.span.first : 0;
  }
}

}  // namespace

bool is_nested() {
  return depth > 0;
}

Around::Around(const Library& library, const Call& call) : stream_(call.stream) {
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
  grouped_ = open_group.depth > 0;
  const bool message = is_message(call.operation);
  Event event{.operation = call.operation,
              .group = known->group,
              .dtype = type_of(call.type),
              .reduce_op = reduce_op_of(call.reduce_op),
              .object = reinterpret_cast<std::uint64_t>(call.stream),
              .count = call.count,
              .peer = call.root,
              .detail = wire::kOnStream | (grouped_ ? wire::kGrouped : 0U)};
  index_ = write_call(*ring, event, message);
  slot_ = &ring->slot[(index_ - 1) % wire::kSlots];
  span_ = {.group = known->group,
           .point_to_point = message,
           .operation = call.operation,
           .first = event.group_sequence,
           .last = event.group_sequence};
  ring_ = ring;
  if (!grouped_) {
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
  if (grouped_ && launched) {
    if (open_group.held_count < kHeld) {
      open_group.held[open_group.held_count++] = {slot_, index_, stream_, span_};
    }
    return result;
  }
  if (pair_.begun == Begun::kCaptured) {
    note_captured(*ring_, *slot_, index_);
  } else if (end_pair(pair_, stream_, span_, launched)) {
    note(*ring_, *slot_, index_, wire::kTracked);
  }
  if (!launched) {
    note(*ring_, *slot_, index_, wire::kTracked);
    call_ended(*ring_, span_, wire::Phase::kFailed);
  }
  return result;
}

AroundHost::AroundHost(const Library& library, std::uint64_t id, int rank, int size,
                       std::uint64_t magic)
    : id_(id), magic_(magic), rank_(rank), size_(size) {
  if (depth++ > 0 || switched_off) {
    return;
  }
  ring_ = ring_or_make();
  if (ring_ != nullptr) {
    span_.group = new_group(*ring_, library, id, rank, size);
    write(wire::Operation::kCommunicatorInit);
  }
}

AroundHost::AroundHost(const Library& library, wire::Operation operation, Communicator handle)
    : communicator_(handle) {
  if (depth++ > 0 || switched_off) {
    return;
  }
  ring_ = ring_or_make();
  if (ring_ != nullptr) {
    const Known* const known = communicator(*ring_, library, handle);
    span_.group = known == nullptr ? 0 : known->group;
    write(operation);
  }
}

AroundHost::~AroundHost() {
  --depth;
}

void AroundHost::write(wire::Operation operation) {
  if (span_.group == 0) {
    ring_ = nullptr;
    return;
  }
  Event event{.operation = operation, .group = span_.group};
  write_call(*ring_, event, false);
  span_.operation = operation;
  span_.first = event.group_sequence;
  span_.last = event.group_sequence;
}

Result AroundHost::with(Result result) {
  if (ring_ == nullptr) {
    return result;
  }
  const Inside inside;
  if (result == kInProgress) {
    if (Known* const known = known_communicator(communicator_); known != nullptr) {
      known->init_sequence = span_.first;
    }
    return result;
  }
  call_ended(*ring_, span_, result == kSuccess ? wire::Phase::kCompleted : wire::Phase::kFailed);
  return result;
}

Result AroundHost::with(Result result, const Communicator* made) {
  if (ring_ == nullptr || made == nullptr) {
    return result;
  }
  const Inside inside;
  const Coming coming{
      .made = made, .id = id_, .magic = magic_, .rank = rank_, .size = size_, .span = span_};
  const bool going_on = result == kInProgress || (result == kSuccess && open_group.depth > 0);
  if (open_group.depth > 0 && going_on) {
    if (open_group.coming_count < kComing) {
      open_group.coming[open_group.coming_count++] = coming;
    }
    return result;
  }
  if (going_on || result == kSuccess) {
    arrived(*ring_, coming, result == kInProgress);
  }
  return with(result);
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

std::uint32_t take_captured() {
  return captured_calls.exchange(0, std::memory_order_relaxed);
}

void group_started() {
  ++open_group.depth;
}

void group_ends() {
  if (open_group.depth != 1) {
    return;
  }
  const Inside inside;
  open_group.streams = 0;
  for (int i = 0; i < open_group.held_count; ++i) {
    const Stream stream = open_group.held[i].stream;
    bool known = false;
    for (int k = 0; k < open_group.streams; ++k) {
      known = known || open_group.stream[k] == stream;
    }
    if (!known && open_group.streams < kStreams) {
      open_group.stream[open_group.streams] = stream;
      open_group.pair[open_group.streams++] = begin_pair(stream);
    }
  }
}

namespace {

/// All calls of the group on one stream share its event pair: they are one launch.
void end_stream(wire::Ring& ring, int number, bool launched) {
  const Stream stream = open_group.stream[number];
  Pair pair = open_group.pair[number];
  for (int i = 0; i < open_group.held_count; ++i) {
    const Held& held = open_group.held[i];
    if (held.stream != stream) {
      continue;
    }
    if (pair.begun == Begun::kCaptured) {
      note_captured(ring, *held.slot, held.index);
    } else if (end_pair(pair, stream, held.span, launched)) {
      note(ring, *held.slot, held.index, wire::kTracked);
    }
    if (pair.begun == Begun::kTracked) {
      pair = begin_pair(stream);  // the next call's: begins where this one ended
    }
  }
  end_pair(pair, stream, {}, false);
}

}  // namespace

void group_ended(Result result) {
  if (open_group.depth == 0 || --open_group.depth > 0) {
    return;
  }
  const Inside inside;
  wire::Ring* const ring_now = ring();
  const bool launched = result == kSuccess || result == kInProgress;
  for (int i = 0; ring_now != nullptr && i < open_group.streams; ++i) {
    end_stream(*ring_now, i, launched);
  }
  for (int i = 0; ring_now != nullptr && !launched && i < open_group.held_count; ++i) {
    note(*ring_now, *open_group.held[i].slot, open_group.held[i].index, wire::kTracked);
    call_ended(*ring_now, open_group.held[i].span, wire::Phase::kFailed);
  }
  for (int i = 0; ring_now != nullptr && i < open_group.coming_count; ++i) {
    const Coming& coming = open_group.coming[i];
    if (launched) {
      arrived(*ring_now, coming, result == kInProgress);
    }
    if (result != kInProgress) {
      call_ended(*ring_now, coming.span, launched ? wire::Phase::kCompleted : wire::Phase::kFailed);
    }
  }
  open_group.held_count = 0;
  open_group.coming_count = 0;
  open_group.streams = 0;
}

void async_answer(Communicator communicator, Result state) {
  Known* const known = known_communicator(communicator);
  wire::Ring* const ring_now = ring();
  if (known == nullptr || ring_now == nullptr || known->init_sequence == 0 ||
      state == kInProgress) {
    return;
  }
  const Inside inside;
  const Span span{.group = known->group,
                  .point_to_point = false,
                  .operation = wire::Operation::kCommunicatorInit,
                  .first = known->init_sequence,
                  .last = known->init_sequence};
  known->init_sequence = 0;
  call_ended(*ring_now, span, state == kSuccess ? wire::Phase::kCompleted : wire::Phase::kFailed);
}

}  // namespace ddpdoctor::agent::nccl
