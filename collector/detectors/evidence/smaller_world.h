// SPDX-License-Identifier: Apache-2.0
// Ranks in a new rendezvous after a rank exited: only some of them have the smaller WORLD_SIZE.
#pragma once

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Of the waiting ranks, some have a WORLD_SIZE that counts only ranks that have not ended, and
/// others expect more: no rank is missing, the sizes differ.
bool meet_with_two_sizes(const graph::Examination& examination, const model::RankSet& waiting,
                         const model::RankSet& ended);

}  // namespace ddpdoctor::detectors
