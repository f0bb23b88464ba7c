// SPDX-License-Identifier: Apache-2.0
// Threads of all processes of the job, what each waits for, and who could end it: kernel objects as
// the sources read them, locks of Python by the source, calls of torch.distributed.rpc by who
// answers them, collectives by who has not joined. What is not known is taken for a thread that
// goes on.
#pragma once

#include <string>
#include <vector>

#include "collector/graph/examination.h"
#include "collector/graph/knots.h"

namespace ddpdoctor::detectors {

/// What a thread waits at.
enum class Blockage { kNone, kObject, kPrivateLock, kRpc, kRanks };

struct BlockedThread {
  const model::Process* process = nullptr;
  const model::Thread* thread = nullptr;
  Blockage blockage = Blockage::kNone;
  const model::Fact* object = nullptr;  // its blocked-on fact, where there is one
  bool owner_known = false;             // of a lock of Python: the source names one who has it
};

/// Threads and, at the same places, what the search for knots takes.
struct BlockedThreads {
  std::vector<BlockedThread> threads;
  std::vector<graph::ChoiceNode> nodes;
};

/// Empty when no thread of the newest observation waits at a kernel object.
BlockedThreads blocked_threads(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
