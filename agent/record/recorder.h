// SPDX-License-Identifier: Apache-2.0
// This process's ring: created at the first relevant event, then reserve → fill → publish, without
// a lock. What cannot be recorded is counted; no failure here is visible to the job.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/types.h>

#include "wire/events.h"
#include "wire/layout.h"

namespace ddpdoctor::agent {

/// The ring if it exists; never creates it.
wire::Ring* ring();
/// The ring, created now if recording is wanted and possible.
wire::Ring* ring_or_make();

/// The rank in another process's ring, -1 if it has no ring or no rank.
std::int32_t rank_in_ring_of(pid_t pid, std::uint64_t start_ticks);

/// The content of a slot; defaults mean "unknown".
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

/// Offset of a text in the pool, equal for equal texts; 0 if it does not fit.
std::uint32_t intern(wire::Ring& ring, const char* text, std::size_t length);

/// CLOCK_MONOTONIC, nanoseconds; times of one thread may be a few nanoseconds out of order.
std::uint64_t now();
std::uint32_t thread_id();

/// Sets the folder for rings; called once at the start.
void choose_spool(const char* folder);
#if defined(__aarch64__)
inline constexpr std::size_t kPage =
    65536;  // the largest page size; the kernel knows the actual one
#else
inline constexpr std::size_t kPage = 4096;
#endif
/// From now on, a child made by fork or clone sees zeros in these pages (ours, aligned to kPage),
/// whatever created it and whatever its handlers do. False if the kernel does not support it.
bool forget_in_children(void* pages, std::size_t bytes);

/// Call in a forked child: the parent's ring is not its own.
void forget_ring();

/// Keeps the last part of what the process writes to standard error.
void keep_stderr(wire::Ring& ring, const char* text, std::size_t length);

}  // namespace ddpdoctor::agent
