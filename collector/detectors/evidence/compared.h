// SPDX-License-Identifier: Apache-2.0
// Which parts of one call were known on every rank, so that they could be compared at all.
#pragma once

#include <string>
#include <vector>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// What one rank passes to a call and the others must pass alike.
enum class Compared { kSize, kDtype, kSplits, kReduceOp, kRoot, kMembers };

std::string_view name_of(Compared part);

/// Parts that matter for this operation and that some member's record of it lacks.
std::vector<Compared> not_compared(const graph::Examination& examination,
                                   const graph::GroupView& view, std::int64_t sequence);

/// "sizes, reduce operations"
std::string listed(const std::vector<Compared>& parts);

}  // namespace ddpdoctor::detectors
