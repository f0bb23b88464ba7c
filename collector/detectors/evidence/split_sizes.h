// SPDX-License-Identifier: Apache-2.0
// An all_to_all in which what one rank sends is not what another expects.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "rank 0 sends 3 elements to rank 1, which expects 1": the first pair of the call that differs;
/// empty where the splits of no such pair are known.
std::string split_pair(const graph::Examination& examination, const graph::Divergence& divergence);

/// Where only sums are recorded: what all ranks send together is not what they expect. Which of
/// them is wrong the sums do not tell.
std::optional<Finding> mismatched_sums(const graph::Examination& examination,
                                       const graph::GroupView& view);

}  // namespace ddpdoctor::detectors
