// SPDX-License-Identifier: Apache-2.0
// A call that a rank left out according to the rhythm of the recorded calls; no line shows why.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Summary and fix.
void tell_left_out(const graph::Examination& examination, const Explanation& explanation,
                   Finding& finding);

}  // namespace ddpdoctor::detectors
