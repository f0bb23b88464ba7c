// SPDX-License-Identifier: Apache-2.0
// A collective in `__del__`: Python runs it when the object is freed, and when that is depends on
// who still refers to it on each rank: a traceback that was kept, a cycle that waits for the
// garbage collector.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// One side makes its call below a `__del__` of the user's, the other does not.
bool one_is_in_a_finalizer(const Parting& parting);

/// Sets the cause if that is so.
bool read_finalizer(Explanation& explanation);

/// Summary and fix.
void tell_finalizer(const Explanation& explanation, Finding& finding);

}  // namespace ddpdoctor::detectors
