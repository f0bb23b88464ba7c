// SPDX-License-Identifier: Apache-2.0
// Ranks that wait in the first round of a loop in a function which the others do not stand in:
// those did not leave that loop earlier, they left out its function, or what comes before the loop
// in it.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Sets branch and cause where whoever waits in `explanation.loop` has only begun it, and the
/// source has what can have led the others past all of it: a `continue` before the call, an
/// exception that was caught, a condition above the loop. The explanation must have fork and loop.
bool read_left_out_loop(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
