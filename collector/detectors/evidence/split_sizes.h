// SPDX-License-Identifier: Apache-2.0
// An all_to_all in which one rank sends a different number of elements than another expects.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "rank 0 sends 3 elements to rank 1, which expects 1": the first differing pair of the call;
/// empty if no such pair has known splits.
std::string split_pair(const graph::Examination& examination, const graph::Divergence& divergence);

/// For calls with recorded sums only: all ranks together send a different number than they expect.
/// The sums do not show which rank is wrong.
std::optional<Finding> mismatched_sums(const graph::Examination& examination,
                                       const graph::GroupView& view);

}  // namespace ddpdoctor::detectors
