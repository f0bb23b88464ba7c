// SPDX-License-Identifier: Apache-2.0
// Divergence at a backward pass: some ranks wait for a bucket that the odd ones, which are past
// their own backward, never reduced.
#pragma once

#include <string_view>

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

inline constexpr std::string_view kOrUnused =
    "Parameters that went unused in backward would look the same.";

/// True if ranks wait in backward for others behind them in the loop, and no evidence shows whether
/// these lack the backward of this step or of the next. The explanation must have a fork and a
/// branch.
bool may_lack_a_bucket(const graph::Examination& examination, const Explanation& explanation);

/// From the lines of both sides.
bool read_unused(const graph::Examination& examination, Explanation& explanation);

/// From the reducers, whatever the number of ranks without gradients.
bool read_recorded_unused(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
