// SPDX-License-Identifier: Apache-2.0
// Deadlocks inside libraries, by the pair of functions in which two threads wait. Stacks do not
// show the locks of a library's own Python code.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

Findings library_deadlocks(const graph::Examination& examination, const model::Process& process,
                           Confidence still);

}  // namespace ddpdoctor::detectors
