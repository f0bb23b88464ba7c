// SPDX-License-Identifier: Apache-2.0
// A loop in which ranks exchange messages, and which some have left while others are still in it.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// `standing` waits in a send or recv without partner. Where the source shows that its peer
/// (without one on record: all who exchange nothing) has left the loop around it, says that of the
/// finding: who left, which loop. Else the finding stays as it is.
void tell_left_exchange(const graph::Examination& examination, const graph::Standing& standing,
                        Finding& finding);

}  // namespace ddpdoctor::detectors
