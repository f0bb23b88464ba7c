// SPDX-License-Identifier: Apache-2.0
// Ranks whose own code is at one line, below which a framework led them to different calls: the
// lines of the framework's function in which they diverge say more than the user's line twice.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Puts both sides at their innermost lines in the framework's file in which they diverge, and
/// keeps the user's line. For a divergence that the user's source does not explain.
void place_in_framework(Explanation& explanation);

/// The user's line, if the sides are placed in a framework.
void add_user_line(const Explanation& explanation, Finding& finding);

}  // namespace ddpdoctor::detectors
