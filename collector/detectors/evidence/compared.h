// SPDX-License-Identifier: Apache-2.0
// The parts of a call that were known on every rank and could be compared.
#pragma once

#include <string>
#include <vector>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// A part of a call that must be equal on all ranks.
enum class Compared { kSize, kDtype, kSplits, kReduceOp, kRoot, kMembers };

std::string_view name_of(Compared part);

/// Parts that matter for this operation but are missing in the record of some member.
std::vector<Compared> not_compared(const graph::Examination& examination,
                                   const graph::GroupView& view, std::int64_t sequence);

/// "sizes, reduce operations"
std::string listed(const std::vector<Compared>& parts);

}  // namespace ddpdoctor::detectors
