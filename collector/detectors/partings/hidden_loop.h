// SPDX-License-Identifier: Apache-2.0
// An epoch without a loop in the source: `consume(map(partial(step, model), loader))`. One
// statement makes the steps, and a rank after it has run out of batches.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Sets loop and cause if one side is still in such a `map(…)` and the other has left it. False if
/// a loop of the source encloses the statement, or if the records do not show several iterations of
/// it on both sides. The explanation must have a fork.
bool read_hidden_loop(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
