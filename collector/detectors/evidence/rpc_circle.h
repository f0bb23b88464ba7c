// SPDX-License-Identifier: Apache-2.0
// Ranks that talk by torch.distributed.rpc, each of which waits for what only a call of another one
// could bring: nobody is left to make that call.
#pragma once

#include <vector>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// All ranks of the job, when each takes from a queue of its own without a limit and has no other
/// Python thread; empty otherwise.
std::vector<const graph::Standing*> rpc_circle(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
