// SPDX-License-Identifier: Apache-2.0
// Partings at a loop: some ranks have left one that the others are in, or make more calls in one
// that the others went through before they began the next pass.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Fills in the cause when a loop is what parts them. The explanation must have a fork.
bool read_loop(const graph::Examination& examination, Explanation& explanation);

/// The branch leads out of a loop over epochs from behind one over batches, and the ranks in that
/// are in the very pass that the others left early: the branch is not what led those out. Hedges
/// the branch where no count and no call between two epochs tells.
bool is_behind_a_shorter_epoch(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
