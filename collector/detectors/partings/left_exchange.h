// SPDX-License-Identifier: Apache-2.0
// A loop in which ranks exchange messages, and which some have left while others are still in it.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// `standing` waits in a send or recv without a partner. If the source shows that its peer (or,
/// without a recorded peer, every rank that exchanges nothing) has left the loop around it, adds to
/// the finding which ranks left and which loop. Otherwise the finding is unchanged.
void tell_left_exchange(const graph::Examination& examination, const graph::Standing& standing,
                        Finding& finding);

}  // namespace ddpdoctor::detectors
