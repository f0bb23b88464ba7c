// SPDX-License-Identifier: Apache-2.0
// One side is in a function that a library calls once more; the other is after the line that passed
// the function to the library. Loops and conditions in that function are the same on all ranks, but
// the number of its calls differs.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Sets callback and cause. The explanation must have a fork.
bool read_callback(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
