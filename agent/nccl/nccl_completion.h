// SPDX-License-Identifier: Apache-2.0
// When the GPU begins and finishes calls: a pair of driver events around a launch on its stream
// (one pair, whatever the number of calls in the launch) and a thread that queries them. Events
// without timing; no callback, no new context, nothing while a stream is being captured into a
// graph.
#pragma once

#include <cstdint>

#include "agent/nccl/nccl_library.h"
#include "agent/nccl/nccl_spans.h"

namespace ddpdoctor::agent::nccl {

enum class Begun {
  kUntracked,  // no driver, no context, or no reader
  kFull,       // more launches are open than can be tracked
  kTracked,
  kCaptured
};

/// An event pair whose first event was recorded.
struct Pair {
  Begun begun = Begun::kUntracked;
  std::uint32_t slot = 0;
};

/// Call before the real function.
Pair begin_pair(Stream stream);
/// Adds calls to the launch enclosed by the pair; counts them as untracked if they do not fit.
void add_to_pair(wire::Ring& ring, const Pair& pair, const Span& span);
/// Call after the launch: the completion of the calls will be recorded, and they are marked as
/// tracked. Calls that cannot be tracked after all are counted. `later`: the launch ended some time
/// ago, and another context or a capture may have begun since.
void end_pair(wire::Ring& ring, const Pair& pair, Stream stream, bool later = false);
/// Call if nothing was launched.
void drop_pair(const Pair& pair);
/// Call if something was or will be launched but is not tracked: its calls are counted.
void abandon_pair(wire::Ring& ring, const Pair& pair);

/// The process exits, or is a forked child: no further queries.
void stop_watching();

}  // namespace ddpdoctor::agent::nccl
