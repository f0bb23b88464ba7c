// SPDX-License-Identifier: Apache-2.0
// When does the GPU begin and finish a call? A pair of events of the driver around it on its
// stream, and a thread of ours that asks them. Events without times, no callback, no context made,
// nothing while a stream is being captured into a graph.
#pragma once

#include <cstdint>

#include "agent/nccl/nccl_library.h"
#include "wire/events.h"
#include "wire/layout.h"

namespace ddpdoctor::agent::nccl {

/// Calls of one group, of one kind, that the same events tell of.
struct Span {
  std::uint16_t group = 0;  // index + 1
  bool point_to_point = false;
  wire::Operation operation = wire::Operation::kUnknown;
  std::uint32_t first = 0;  // group sequences
  std::uint32_t last = 0;
};

enum class Begun { kUntracked, kTracked, kCaptured };

/// An event pair that was begun; to be ended on the same thread.
struct Pair {
  Begun begun = Begun::kUntracked;
  std::uint32_t slot = 0;
};

/// Before the real call.
Pair begin_pair(Stream stream);
/// After it; `launched` is false when the call failed. True when its completion will be told.
bool end_pair(const Pair& pair, Stream stream, const Span& span, bool launched);

/// How a call ended is written once, by whoever learns it.
void call_ended(wire::Ring& ring, const Span& span, wire::Phase phase);

/// The process ends, or is a forked child: nobody asks any more.
void stop_watching();

}  // namespace ddpdoctor::agent::nccl
