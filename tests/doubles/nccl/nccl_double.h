// SPDX-License-Identifier: Apache-2.0
// What the parts of the double of NCCL share: the group that a thread has open, and what goes on in
// the background.
#pragma once

#include <functional>
#include <vector>

#include "tests/doubles/nccl/nccl_transport.h"

namespace ddpdoctor::doubles {

extern thread_local int group_depth;
/// Calls of an open group in which the host waits for other ranks: they run together at its end.
struct HostCall {
  Communicator* communicator;  // whose state tells how far it is
  std::function<int()> run;
};
extern thread_local std::vector<HostCall> held_inits;

/// Runs `work`, or goes on with it in the background where a communicator does not block: these are
/// in progress meanwhile. $NCCL_DOUBLE_HOLD: while that file exists, nothing begins in the
/// background. $NCCL_DOUBLE_FAILS: it fails with this number, and nothing of it happens.
int carry_out(std::vector<Communicator*> communicators, std::function<int()> work);
/// Carries out a call of the host, at the end of the group if one is open.
int carry_out_or_hold(Communicator* communicator, std::function<int()> work);
/// As NCCL: a communicator in progress takes no call. Counted for tests.
bool refuses(Communicator* communicator);

}  // namespace ddpdoctor::doubles
