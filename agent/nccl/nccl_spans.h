// SPDX-License-Identifier: Apache-2.0
// Calls of one group with consecutive numbers, as the ring has them: what is noted about them
// later, and how they end.
#pragma once

#include <cstdint>

#include "wire/events.h"
#include "wire/layout.h"

namespace ddpdoctor::agent::nccl {

/// Calls of one group and one kind that share their fate: one call, or several of an ncclGroupEnd.
struct Span {
  std::uint16_t group = 0;  // index + 1
  bool point_to_point = false;
  wire::Operation operation = wire::Operation::kUnknown;  // of all of them, else unknown
  std::uint32_t first = 0;                                // group sequences
  std::uint32_t last = 0;
  std::uint64_t first_index = 0;  // slots of the first and the last one; others may lie between
  std::uint64_t last_index = 0;

  [[nodiscard]] std::uint32_t calls() const {
    return group == 0 ? 0 : last - first + 1;
  }
};

/// Makes `span` include `next` when that is the call right behind it; false when it is another one.
bool append(Span& span, const Span& next);

/// Sets and clears bits of the calls' slots that are still in the ring.
void note(wire::Ring& ring, const Span& span, std::uint32_t set, std::uint32_t clear = 0);

/// Records how the calls went on. Whoever learns it does so once.
void call_ended(wire::Ring& ring, const Span& span, wire::Phase phase);

/// Calls whose end is not recorded, because a table of ours is full.
void count_untracked(wire::Ring& ring, std::uint32_t calls);

}  // namespace ddpdoctor::agent::nccl
