// SPDX-License-Identifier: Apache-2.0
// Words the report of a call that runs different functions on different ranks.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Adds the locations: the call, the line that chose the function, and the other side's function.
void add_dispatch(const Explanation& explanation, Finding& finding);

/// Sets the summary and the fix, and adds evidence.
void tell_dispatch(const graph::Examination& examination, const Explanation& explanation,
                   Finding& finding);

}  // namespace ddpdoctor::detectors
