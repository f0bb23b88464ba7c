// SPDX-License-Identifier: Apache-2.0
// What NCCL's result of a call, or of the outermost ncclGroupEnd, means for the calls before it.
// Calls of a group are one launch: one pair of events per stream, whatever the number of calls.
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
  // Communicator of the call; for a new one its parent, or null.
  Communicator communicator = nullptr;
  Span span;
  Child child;
};

/// The real function returned, outside a group or with an error.
void launch_ended(wire::Ring& ring, const Launched& call, const Pair& pair, Result result);
void host_call_ended(wire::Ring& ring, const Hosted& call, Result result);

/// True if this thread has an open group, at whose end its calls are launched.
bool group_is_open();
/// Holds the call until then.
void hold(wire::Ring& ring, const Launched& call);
void hold(wire::Ring& ring, const Hosted& call);
void group_started();
/// Call before and after the outermost ncclGroupEnd.
void group_ends();
void group_ended(Result result);

/// Number of calls captured into a graph since the last query.
std::uint32_t take_captured();

}  // namespace ddpdoctor::agent::nccl
