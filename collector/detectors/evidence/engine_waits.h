// SPDX-License-Identifier: Apache-2.0
// vLLM's engine process that waited for its workers until a timeout: no line says which worker
// hangs, or where.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "TimeoutError: RPC call to sample_tokens timed out.", and before it perhaps "No available shared
/// memory broadcast block found in 60 seconds."
std::optional<Finding> engine_waits(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
