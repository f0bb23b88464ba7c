// SPDX-License-Identifier: Apache-2.0
// An epoch without a loop in the source: `consume(map(partial(step, model), loader))`. One
// statement makes the steps, and who stands behind it has run out of batches.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Sets loop and cause where one side is still in such a `map(…)` and the other has left it. False
/// where a loop of the source leads round the statement, or where the records do not show several
/// rounds of it on both sides. The explanation must have a fork.
bool read_hidden_loop(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
