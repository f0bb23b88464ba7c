// SPDX-License-Identifier: Apache-2.0
// The threads of all processes of the job, what each waits for, and which threads could end the
// wait: kernel objects from the sources, Python locks from the source code, calls of
// torch.distributed.rpc by the thread that serves them, collectives by the ranks that have not
// joined. A thread with an unknown wait counts as able to continue.
#pragma once

#include <string>
#include <vector>

#include "collector/graph/examination.h"
#include "collector/graph/knots.h"

namespace ddpdoctor::detectors {

/// The kind of object that a thread waits for.
enum class Blockage { kNone, kObject, kPrivateLock, kRpc, kRanks };

struct BlockedThread {
  const model::Process* process = nullptr;
  const model::Thread* thread = nullptr;
  Blockage blockage = Blockage::kNone;
  const model::Fact* object = nullptr;  // its blocked-on fact, if any
  bool owner_known = false;             // for a Python lock: the source shows its owner
};

/// Threads and, at the same indices, the nodes for the knot search.
struct BlockedThreads {
  std::vector<BlockedThread> threads;
  std::vector<graph::ChoiceNode> nodes;
};

/// Empty if no thread of the newest observation waits for a kernel object.
BlockedThreads blocked_threads(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
