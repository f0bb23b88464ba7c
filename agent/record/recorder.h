// SPDX-License-Identifier: Apache-2.0
// This process's ring: made lazily at the first event worth it, then reserve → fill → publish,
// without a lock. What cannot be recorded is counted; nothing here can fail visibly.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/types.h>

#include "wire/events.h"
#include "wire/layout.h"

namespace ddpdoctor::agent {

/// The ring when there is one; never makes it.
wire::Ring* ring();
/// The ring, made now if recording is wanted and possible.
wire::Ring* ring_or_make();

/// The rank that another process's ring names, -1 when it has no ring or names none.
std::int32_t rank_in_ring_of(pid_t pid, std::uint64_t start_ticks);

/// What goes into a slot; defaults mean "unknown".
struct Event {
  wire::EventKind kind = wire::EventKind::kNone;
  wire::Phase phase = wire::Phase::kEnqueued;
  wire::Operation operation = wire::Operation::kUnknown;
  std::uint32_t site = 0;
  std::uint16_t group = 0;
  std::uint8_t dtype = 255;
  std::uint8_t reduce_op = 255;
  std::uint64_t object = 0;
  std::int64_t count = -1;
  std::uint32_t group_sequence = 0;
  std::int32_t peer = -1;
  std::uint32_t text = 0;
  std::uint32_t detail = 0;
};

/// Writes one slot; returns its index + 1.
std::uint64_t record(wire::Ring& ring, const Event& event);

/// Offset of a text in the pool, the same for the same text; 0 when it does not fit.
std::uint32_t intern(wire::Ring& ring, const char* text, std::size_t length);

/// CLOCK_MONOTONIC, nanoseconds; times of one thread may be a few nanoseconds out of order.
std::uint64_t now();
std::uint32_t thread_id();

/// Remembers where rings are to be made; called once at start.
void choose_spool(const char* folder);
#if defined(__aarch64__)
inline constexpr std::size_t kPage = 65536;  // the largest: which one it is, the kernel says
#else
inline constexpr std::size_t kPage = 4096;
#endif
/// From now on a child made by fork or clone sees zeros in these pages (of ours, aligned to kPage),
/// whoever made it and whatever its handlers do. False where the kernel cannot.
bool forget_in_children(void* pages, std::size_t bytes);

/// In a forked child: the parent's ring is not ours.
void forget_ring();

/// Keeps the tail of what the process writes to standard error.
void keep_stderr(wire::Ring& ring, const char* text, std::size_t length);

}  // namespace ddpdoctor::agent
