// SPDX-License-Identifier: Apache-2.0
// Partings at a backward: some ranks wait for a bucket that the odd ones, who are past their own
// backward, never reduced.
#pragma once

#include <string_view>

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

inline constexpr std::string_view kOrUnused =
    "Parameters that went unused in backward would look the same.";

/// Somebody waits in backward for those behind it in the loop, and nothing tells whether that is
/// theirs of this step or of the next one. The explanation must have a fork and a branch.
bool may_lack_a_bucket(const graph::Examination& examination, const Explanation& explanation);

/// By where both stand.
bool read_unused(const graph::Examination& examination, Explanation& explanation);

/// By the reducers, however few or many ranks lack gradients.
bool read_recorded_unused(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
