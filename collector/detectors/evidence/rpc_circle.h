// SPDX-License-Identifier: Apache-2.0
// Ranks that communicate by torch.distributed.rpc and each wait for something that only a call of
// another rank could bring: no rank is left to make that call.
#pragma once

#include <vector>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// All ranks of the job, if each reads a queue of its own without a timeout and has no other Python
/// thread; empty otherwise.
std::vector<const graph::Standing*> rpc_circle(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
