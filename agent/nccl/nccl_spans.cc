// SPDX-License-Identifier: Apache-2.0
#include "agent/nccl/nccl_spans.h"

#include <atomic>

#include "agent/record/recorder.h"

namespace ddpdoctor::agent::nccl {
namespace {

wire::EventKind kind_of(const Span& span) {
  return span.point_to_point ? wire::EventKind::kPointToPoint : wire::EventKind::kCollective;
}

void change(std::uint32_t& detail, std::uint32_t set, std::uint32_t clear) {
  const std::atomic_ref<std::uint32_t> bits(detail);
  bits.fetch_or(set, std::memory_order_relaxed);
  if (clear != 0) {
    bits.fetch_and(~clear, std::memory_order_relaxed);
  }
}

bool is_in(const Span& span, const wire::Slot& slot) {
  return slot.group == span.group && slot.kind == static_cast<std::uint16_t>(kind_of(span)) &&
         slot.phase == static_cast<std::uint8_t>(wire::Phase::kEnqueued) &&
         slot.group_sequence >= span.first && slot.group_sequence <= span.last;
}

}  // namespace

bool append(Span& span, const Span& next) {
  if (span.group != next.group || span.point_to_point != next.point_to_point ||
      next.first != span.last + 1) {
    return false;
  }
  if (span.operation != next.operation) {
    span.operation = wire::Operation::kUnknown;
  }
  span.last = next.last;
  span.last_index = next.last_index;
  return true;
}

void note(wire::Ring& ring, const Span& span, std::uint32_t set, std::uint32_t clear) {
  if (span.group == 0 || span.group > wire::kGroups) {
    return;
  }
  std::uint64_t index = span.first_index;
  if (span.last_index >= wire::kSlots && index <= span.last_index - wire::kSlots) {
    index = span.last_index - wire::kSlots + 1;  // earlier slots are overwritten
  }
  for (; index <= span.last_index; ++index) {
    wire::Slot& slot = ring.slot[(index - 1) % wire::kSlots];
    if (slot.sequence.load(std::memory_order_acquire) == index && is_in(span, slot)) {
      change(slot.detail, set, clear);
    }
  }
  wire::Slot& last = ring.group[span.group - 1].last;
  if (is_in(span, last)) {
    change(last.detail, set, clear);
  }
}

void call_ended(wire::Ring& ring, const Span& span, wire::Phase phase) {
  if (span.group == 0) {
    return;
  }
  wire::Group& group = ring.group[span.group - 1];
  if (phase == wire::Phase::kCompleted && !span.point_to_point) {
    const std::atomic_ref<std::uint32_t> completed(group.completed);
    std::uint32_t before = completed.load(std::memory_order_relaxed);
    while (span.last > before &&
           !completed.compare_exchange_weak(before, span.last, std::memory_order_relaxed)) {
    }
    group.last_completed_time = now();
  }
  if (phase == wire::Phase::kFailed) {
    std::atomic_ref(group.failed).fetch_add(span.calls(), std::memory_order_relaxed);
  }
  for (std::uint32_t sequence = span.first; sequence <= span.last; ++sequence) {
    record(ring, {.kind = kind_of(span),
                  .phase = phase,
                  .operation = span.operation,
                  .group = span.group,
                  .group_sequence = sequence});
  }
}

void count_untracked(wire::Ring& ring, std::uint32_t calls) {
  if (calls > 0) {
    ring.header.untracked.fetch_add(calls, std::memory_order_relaxed);
  }
}

}  // namespace ddpdoctor::agent::nccl
