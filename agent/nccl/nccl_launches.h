// SPDX-License-Identifier: Apache-2.0
// What NCCL's answer to a call, or to the outermost ncclGroupEnd, says of the calls before it.
// Those of a group are one launch: per stream one pair of events, however many calls.
#pragma once

#include <cstdint>

#include "agent/nccl/nccl_background.h"
#include "agent/nccl/nccl_completion.h"

namespace ddpdoctor::agent::nccl {

/// A call on a stream.
struct Launched {
  Communicator communicator = nullptr;
  Span span;
  Stream stream = nullptr;
};
/// A call in which the host waits for other ranks.
struct Hosted {
  Communicator communicator = nullptr;  // who was called; of a new one its parent, or null
  Span span;
  Child child;
};

/// The real function answered, outside of a group or with an error.
void launch_ended(wire::Ring& ring, const Launched& call, const Pair& pair, Result result);
void host_call_ended(wire::Ring& ring, const Hosted& call, Result result);

/// Whether this thread has a group open, at whose end its calls are launched.
bool group_is_open();
/// Until then they are held.
void hold(wire::Ring& ring, const Launched& call);
void hold(wire::Ring& ring, const Hosted& call);
void group_started();
/// Around the outermost ncclGroupEnd; in between the real one.
void group_ends();
void group_ended(Result result);

/// Calls that were captured into a graph since somebody asked last.
std::uint32_t take_captured();

}  // namespace ddpdoctor::agent::nccl
