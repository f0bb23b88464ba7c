// SPDX-License-Identifier: Apache-2.0
// Words for a divergence of which only two lines of one function are known.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Without sources, the function that both sides are in shows where they differ: a loop that ended
/// earlier on one side, or a branch. Sets summary and fix, and puts the two lines first; without a
/// majority, no rank is accused. The explanation must have a fork.
void tell_fork(const model::JobModel& job, const Explanation& explanation, Finding& finding);

}  // namespace ddpdoctor::detectors
