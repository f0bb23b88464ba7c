// SPDX-License-Identifier: Apache-2.0
// torch.distributed.rpc runs what other ranks ask for in a few threads. If all of them wait in
// handlers for a request that is still to come, no thread is left to run it.
#pragma once

#include <vector>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// A process whose RPC threads all wait in handlers, and the ranks that wait for an answer.
struct FullRpcPool {
  const model::Process* process = nullptr;
  std::vector<const model::Thread*> handlers;
  model::RankSet callers;
};

/// Those processes for which more ranks wait than they have threads: needs native frames, which
/// show whether a thread of RPC is free.
std::vector<FullRpcPool> full_rpc_pools(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
