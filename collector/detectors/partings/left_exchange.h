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

/// The ranks of a circle wait for each other in two loops of one function, the first of which one
/// rank has left: adds that loop, its iterations, and the values that differ. Unchanged if the
/// source gives the loop another length on each rank by design, or if both made all iterations.
void tell_left_in_circle(const graph::Examination& examination, const model::RankSet& circle,
                         Finding& finding);

}  // namespace ddpdoctor::detectors
