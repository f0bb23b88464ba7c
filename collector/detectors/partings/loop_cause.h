// SPDX-License-Identifier: Apache-2.0
// Divergence at a loop: some ranks have left one that the others are in, or make more calls in one
// that the others completed before the next iteration.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Sets the cause if a loop separates the ranks. The explanation must have a fork.
bool read_loop(const graph::Examination& examination, Explanation& explanation);

/// The branch leaves a loop over epochs from a line after a loop over batches, and the ranks inside
/// are in exactly the iteration that the others left early: so the branch is not the exit. Marks
/// the branch as unproven if neither a count nor a call between two epochs shows it.
bool is_behind_a_shorter_epoch(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
