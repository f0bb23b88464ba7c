// SPDX-License-Identifier: Apache-2.0
// What the reader of any divergence should know of the sides' calls, whatever the cause.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Adds the user's line above a framework's, and that a backward repeats a forward.
void add_circumstances(const Explanation& explanation, Finding& finding);

}  // namespace ddpdoctor::detectors
