// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for their GPUs without records of the queued work: only stacks show which ranks
// are elsewhere. A collective of NCCL blocks the stream, and the host stops at the next `.item()`.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"
#include "collector/model/rank_set.h"

namespace ddpdoctor::detectors {

/// Ranks in a call that waits for CUDA work; empty if calls were recorded, because records show
/// more.
model::RankSet behind_their_gpus(const graph::Examination& examination);

/// Ranks whose process computes on a GPU and whose hosts stayed at one line each, in no wait that
/// the stack shows: they wait for their devices. Empty if the job is not still, or a rank is
/// elsewhere.
model::RankSet stay_at_their_lines(const graph::Examination& examination);

/// A minority of ranks is elsewhere while all others wait for their GPUs: the cause is probably
/// there. At most possible, because a long kernel looks the same.
std::optional<Finding> elsewhere_than_gpus(const graph::Examination& examination);

/// Some rank uses a GPU.
bool is_gpu_job(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
