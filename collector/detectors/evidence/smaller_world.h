// SPDX-License-Identifier: Apache-2.0
// Ranks that meet again after one of them has left: those that know of it expect fewer ranks.
#pragma once

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Of the waiting ranks, some have a WORLD_SIZE that counts only ranks that have not ended, and
/// others expect more: whoever ended is not what they wait for, but the two sizes.
bool meet_with_two_sizes(const graph::Examination& examination, const model::RankSet& waiting,
                         const model::RankSet& ended);

}  // namespace ddpdoctor::detectors
