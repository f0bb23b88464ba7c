// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for their GPUs while no record tells what is queued there: the stacks alone show
// who is elsewhere. A collective of NCCL blocks the stream, and the host stops at the next
// `.item()`.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"
#include "collector/model/rank_set.h"

namespace ddpdoctor::detectors {

/// Ranks in a call that waits for CUDA work; empty when calls were recorded, which tell more.
model::RankSet behind_their_gpus(const graph::Examination& examination);

/// Ranks whose process computes on a GPU and whose hosts stayed at one line each, in nothing that a
/// stack names: what their devices wait for decides. Empty when the job is not still, or a rank is
/// elsewhere.
model::RankSet stay_at_their_lines(const graph::Examination& examination);

/// A minority is elsewhere while all the others wait for their GPUs: that is where to look. At most
/// possible, because a long kernel looks the same.
std::optional<Finding> elsewhere_than_gpus(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
