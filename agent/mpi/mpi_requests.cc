// SPDX-License-Identifier: Apache-2.0
// Open requests, in the ring's table of works, and persistent requests.
#include <atomic>

#include "agent/mpi/mpi_state.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

constexpr std::uint32_t kTries = 16;
constexpr std::uint32_t kPeer = 0x80000000U;  // flag in Work::operation: a send or receive

wire::Work& slot_of(wire::Ring& ring, Word request, std::uint32_t attempt) {
  return ring.work[(((request >> 4U) ^ request) * 0x9E3779B1U + attempt) % wire::kWorks];
}

wire::Work* find(wire::Ring& ring, Word request) {
  for (std::uint32_t i = 0; i < kTries; ++i) {
    wire::Work& slot = slot_of(ring, request, i);
    if (slot.object.load(std::memory_order_acquire) == request) {
      return &slot;
    }
  }
  return nullptr;
}

MpiKey key_of(const wire::Work& slot) {
  return {.group = static_cast<std::uint16_t>(slot.group <= wire::kGroups ? slot.group : 0),
          .point_to_point = (slot.operation & kPeer) != 0,
          .sequence = slot.group_sequence,
          .operation = static_cast<wire::Operation>(slot.operation & 0xFFU)};
}

constexpr std::uint32_t kTemplates = 256;
struct TemplateSlot {
  std::atomic<Word> request;
  MpiTemplate content;
};
TemplateSlot templates[kTemplates];

}  // namespace

MpiKey mpi_request(wire::Ring& ring, Word request) {
  const wire::Work* const slot = request == 0 ? nullptr : find(ring, request);
  return slot == nullptr ? MpiKey{} : key_of(*slot);
}

void remember_mpi_request(wire::Ring& ring, Word request, const MpiKey& key) {
  if (request <= 1) {
    return;
  }
  mpi_request_ended(ring, request);
  wire::Work* chosen = &slot_of(ring, request, 0);
  for (std::uint32_t i = 0; i < kTries; ++i) {
    wire::Work& slot = slot_of(ring, request, i);
    std::uint64_t seen = 0;
    if (slot.object.compare_exchange_strong(seen, 1, std::memory_order_acq_rel)) {
      chosen = &slot;
      break;
    }
  }
  chosen->group = key.group;
  chosen->group_sequence = key.sequence;
  chosen->operation = static_cast<std::uint32_t>(key.operation) | (key.point_to_point ? kPeer : 0U);
  chosen->object.store(request, std::memory_order_release);
}

void mpi_request_ended(wire::Ring& ring, Word request) {
  wire::Work* const slot = request <= 1 ? nullptr : find(ring, request);
  if (slot == nullptr) {
    return;
  }
  const MpiKey key = key_of(*slot);
  std::uint64_t expected = request;
  if (slot->object.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) {
    mpi_ended(ring, key, false);
  }
}

void mpi_ended(wire::Ring& ring, const MpiKey& key, bool failed) {
  if (key.group == 0) {
    return;
  }
  wire::Group& group = ring.group[key.group - 1];
  const std::atomic_ref<std::uint32_t> completed(group.completed);
  std::uint32_t before = completed.load(std::memory_order_relaxed);
  while (!key.point_to_point && !failed && key.sequence > before &&
         !completed.compare_exchange_weak(before, key.sequence, std::memory_order_relaxed)) {
  }
  group.last_completed_time = now();
  if (failed) {
    std::atomic_ref(group.failed).fetch_add(1, std::memory_order_relaxed);
  }
  record(ring, {.kind = key.point_to_point ? wire::EventKind::kPointToPoint
                                           : wire::EventKind::kCollective,
                .phase = failed ? wire::Phase::kFailed : wire::Phase::kCompleted,
                .operation = key.operation,
                .group = key.group,
                .group_sequence = key.sequence});
}

void keep_mpi_template(const MpiTemplate& one) {
  for (TemplateSlot& slot : templates) {
    Word free = 0;
    if (slot.request.compare_exchange_strong(free, 1, std::memory_order_acq_rel)) {
      slot.content = one;
      slot.request.store(one.request, std::memory_order_release);
      return;
    }
  }
}

const MpiTemplate* mpi_template(Word request) {
  for (const TemplateSlot& slot : templates) {
    if (slot.request.load(std::memory_order_acquire) == request) {
      return &slot.content;
    }
  }
  return nullptr;
}

void drop_mpi_template(Word request) {
  for (TemplateSlot& slot : templates) {
    Word expected = request;
    if (slot.request.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) {
      return;
    }
  }
}

}  // namespace ddpdoctor::agent
