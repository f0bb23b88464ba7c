// SPDX-License-Identifier: Apache-2.0
// What the parts of the double of NCCL share: the open group of a thread, and operations in the
// background.
#pragma once

#include <functional>
#include <vector>

#include "tests/doubles/nccl/nccl_transport.h"

namespace ddpdoctor::doubles {

extern thread_local int group_depth;
/// A call in an open group in which the host waits for other ranks: such calls run together at the
/// end of the group.
struct HostCall {
  Communicator* communicator;  // its state shows how far the call is
  std::function<int()> run;
};
extern thread_local std::vector<HostCall> held_inits;

/// Runs `work`; for a communicator that does not block, in the background, with its state "in
/// progress" meanwhile. $NCCL_DOUBLE_HOLD: while that file exists, nothing starts in the
/// background. $NCCL_DOUBLE_FAILS: it fails with this number and has no effect.
int carry_out(std::vector<Communicator*> communicators, std::function<int()> work);
/// Runs a call of the host, at the end of the group if one is open.
int carry_out_or_hold(Communicator* communicator, std::function<int()> work);
/// Like NCCL: a communicator in progress accepts no call. Counted for tests.
bool refuses(Communicator* communicator);

}  // namespace ddpdoctor::doubles
