// SPDX-License-Identifier: Apache-2.0
// A line in a function that only passes on what it is given says little: its caller's line is named
// as well.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Adds, for ranks that are at a line of the finding, the lines of the callers that decided.
void add_deciding_callers(const graph::Examination& examination, Finding& finding);

}  // namespace ddpdoctor::detectors
