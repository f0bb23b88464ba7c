// SPDX-License-Identifier: Apache-2.0
// Partings at a loop: some ranks have left one that the others are in, or make more calls in one
// that the others went through before they began the next pass.
#pragma once

#include "collector/detectors/cause.h"

namespace ddpdoctor::detectors {

/// Fills in the cause when a loop is what parts them. The explanation must have a fork.
bool read_loop(const graph::Examination& examination, Explanation& explanation);

/// The branch leads out of a loop over epochs from behind one over batches: where no call stands
/// between two epochs, a rank that has fewer batches looks alike.
void hedge_a_way_out(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
