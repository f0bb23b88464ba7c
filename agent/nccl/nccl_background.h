// SPDX-License-Identifier: Apache-2.0
// Calls that NCCL answers with ncclInProgress: NCCL continues them in a thread of its own, and only
// ncclCommGetAsyncError shows whether they were launched or a communicator was created. Until then
// they are also recorded as in progress: without an end event and without an end.
#pragma once

#include <cstdint>

#include "agent/nccl/nccl_communicators.h"
#include "agent/nccl/nccl_completion.h"
#include "agent/nccl/nccl_library.h"

namespace ddpdoctor::agent::nccl {

/// A communicator created by a call; `made` is the address for its handle, null = none is created.
struct Child {
  const Library* library = nullptr;
  const Communicator* made = nullptr;
  std::uint64_t id = 0;
  std::uint64_t magic = 0;
  std::uint16_t group = 0;  // index + 1; 0 = assigned when it exists
  int rank = -1;
  int size = -1;
};
/// Connects the group with the handle of an existing child. `ready`: NCCL has reported that it is
/// ready; a communicator in progress is not queried for its rank. False without a handle.
bool arrive(wire::Ring& ring, const Child& child, bool ready);

/// One call, or several that are one launch.
struct Going {
  Communicator asked = nullptr;   // communicator to query for the result
  Communicator parent = nullptr;  // another one to query, null = none
  Span span;
  bool on_stream = false;
  Pair pair{};
  bool ends_pair = false;  // the last call of an event pair
  Stream stream = nullptr;
  Child child{};  // has no handle yet
};

/// Calls that were answered with ncclInProgress together: one answer applies to all of them.
class Batch {
 public:
  Batch();
  /// Records the calls as in progress and remembers them; calls that do not fit are counted as
  /// untracked.
  void add(wire::Ring& ring, const Going& going);

 private:
  std::uint64_t number_;
};

/// Taken before a query and passed to `answered`: NCCL's answer does not cover calls that begin
/// later.
std::uint64_t asked_now();
/// The communicator answered with success or an error. Also called for what a later accepted call
/// proves, and for ncclCommDestroy and ncclCommAbort.
void answered(wire::Ring& ring, Communicator communicator, Result state, std::uint64_t asked);

/// NCCL answered that the communicator is in progress. Records the time if the querying thread made
/// the call: it then waits for the call, whatever lines of its own it runs between two queries.
void still_in_progress(wire::Ring& ring, Communicator communicator);

/// In a forked child: it inherits none of this.
void forget_background();

}  // namespace ddpdoctor::agent::nccl
