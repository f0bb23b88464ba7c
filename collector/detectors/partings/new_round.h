// SPDX-License-Identifier: Apache-2.0
// Ranks that wait in the first iteration of a loop in a function that the others are not in: the
// others did not leave that loop earlier; they skipped its function, or what precedes the loop in
// it.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Sets branch and cause if the side in `explanation.loop` has only begun it, and the source
/// contains what may have made the others skip all of it: a `continue` before the call, a caught
/// exception, a condition before the loop. The explanation must have fork and loop.
bool read_left_out_loop(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
