// SPDX-License-Identifier: Apache-2.0
// Whether the job trains with DistributedDataParallel: many messages of torch are the same with and
// without it.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The best evidence: a stack, the agent's record, the user's source, or a traceback in a log.
std::optional<Evidence> ddp_in_use(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
