// SPDX-License-Identifier: Apache-2.0
// What is said of a call that ran different functions.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// The call line, the line that chose, and the function on the other side.
void add_dispatch(const Explanation& explanation, Finding& finding);

/// Summary, fix and evidence.
void tell_dispatch(const graph::Examination& examination, const Explanation& explanation,
                   Finding& finding);

}  // namespace ddpdoctor::detectors
