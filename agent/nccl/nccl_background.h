// SPDX-License-Identifier: Apache-2.0
// Calls that NCCL answers with ncclInProgress: a thread of its own goes on with them, and whether
// they were launched, or a communicator was made, is said by ncclCommGetAsyncError alone. Until
// then they are in progress here, too: no end event, no end.
#pragma once

#include <cstdint>

#include "agent/nccl/nccl_communicators.h"
#include "agent/nccl/nccl_completion.h"
#include "agent/nccl/nccl_library.h"

namespace ddpdoctor::agent::nccl {

/// A communicator that a call makes; `made` is where NCCL puts its handle, null = makes none.
struct Child {
  const Library* library = nullptr;
  const Communicator* made = nullptr;
  std::uint64_t id = 0;
  std::uint64_t magic = 0;
  std::uint16_t group = 0;  // index + 1; 0 = it gets one when it is there
  int rank = -1;
  int size = -1;
};
/// The group and the handle of a child that is there belong together from now on. `ready`: NCCL has
/// said that it is; one that may be in progress is not asked for its rank. False without a handle.
bool arrive(wire::Ring& ring, const Child& child, bool ready);

/// One call, or several that are one launch.
struct Going {
  Communicator asked = nullptr;   // who answers how it went
  Communicator parent = nullptr;  // this one as well, null = nobody else
  Span span;
  bool on_stream = false;
  Pair pair{};
  bool ends_pair = false;  // among those of one pair
  Stream stream = nullptr;
  Child child{};  // still without a handle
};

/// Calls that were answered with ncclInProgress together: one answer is about all of them.
class Batch {
 public:
  Batch();
  /// Notes the calls as in progress and remembers them; what does not fit is counted as untracked.
  void add(wire::Ring& ring, const Going& going);

 private:
  std::uint64_t number_;
};

/// Taken before a question, given to `answered`: what begins after it is not what NCCL answers of.
std::uint64_t asked_now();
/// The communicator answered: success, or an error. Also what a later call proves that it accepted,
/// and what ncclCommDestroy and ncclCommAbort leave no doubt about.
void answered(wire::Ring& ring, Communicator communicator, Result state, std::uint64_t asked);

/// NCCL answered that the communicator is in progress. Notes when, if the thread that made the call
/// asked: it waits for the call, whatever lines of its own it runs between two questions.
void still_in_progress(wire::Ring& ring, Communicator communicator);

/// In a forked child: nothing of this is its own.
void forget_background();

}  // namespace ddpdoctor::agent::nccl
