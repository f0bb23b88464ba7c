// SPDX-License-Identifier: Apache-2.0
// Consecutively numbered calls of one group in the ring: later notes about them, and their ends.
#pragma once

#include <cstdint>

#include "wire/events.h"
#include "wire/layout.h"

namespace ddpdoctor::agent::nccl {

/// Calls of one group and one kind that end together: one call, or several of an ncclGroupEnd.
struct Span {
  std::uint16_t group = 0;  // index + 1
  bool point_to_point = false;
  wire::Operation operation = wire::Operation::kUnknown;  // common to all of them, else unknown
  std::uint32_t first = 0;                                // group sequences
  std::uint32_t last = 0;
  // Slots of the first and the last call; other slots may be in between.
  std::uint64_t first_index = 0;
  std::uint64_t last_index = 0;

  [[nodiscard]] std::uint32_t calls() const {
    return group == 0 ? 0 : last - first + 1;
  }
};

/// Extends `span` by `next` if that is the directly following call; false otherwise.
bool append(Span& span, const Span& next);

/// Sets and clears bits of those of the calls' slots that are still in the ring.
void note(wire::Ring& ring, const Span& span, std::uint32_t set, std::uint32_t clear = 0);

/// Records the calls' new phase. Called once per phase.
void call_ended(wire::Ring& ring, const Span& span, wire::Phase phase);

/// Counts calls whose end is not recorded because a table is full.
void count_untracked(wire::Ring& ring, std::uint32_t calls);

}  // namespace ddpdoctor::agent::nccl
