// SPDX-License-Identifier: Apache-2.0
// Ranks in one operation, by where they are in it.
#pragma once

#include <string>
#include <vector>

#include "collector/detectors/evidence/agreement.h"
#include "collector/graph/examination.h"
#include "collector/model/rank_set.h"

namespace ddpdoctor::detectors {

/// What a rank does, and on which line of the user's.
std::string place_key(const graph::Standing& standing);

/// By the user's line; if that is one, by the module of a sharded model (FSDP, ZeRO-3) whose
/// parameters they gather. Ranks without a known line are left out.
std::vector<Camp> camps_by_place(const graph::Examination& examination,
                                 const model::RankSet& ranks);

/// The calls in which two ranks are have different numbers: the rank with the higher one has passed
/// the other call.
bool are_numbered_apart(const graph::Examination& examination, model::Rank one, model::Rank other);

}  // namespace ddpdoctor::detectors
