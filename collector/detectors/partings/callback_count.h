// SPDX-License-Identifier: Apache-2.0
// One side is in a function that a library calls once more, the other is behind the line that
// handed it over: the loops and conditions in that function are alike on all ranks, and the number
// of its calls is not.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Sets callback and cause. The explanation must have a fork.
bool read_callback(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
