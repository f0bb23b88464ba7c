// SPDX-License-Identifier: Apache-2.0
// Ranks that will run a different number of steps, reported while all of them are still running.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The fix for a different number of steps.
inline constexpr std::string_view kEqualSteps =
    "Give every rank the same number of steps: DistributedSampler with drop_last=True, equal "
    "shards, or wrap the loop in torch.distributed.algorithms.join.Join.";

/// uneven-inputs before it happens: all ranks are in one loop, its iterators have different
/// lengths, and every step calls a collective that all of them must join. Nothing if the source
/// permits another interpretation.
std::optional<Finding> uneven_ahead(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
