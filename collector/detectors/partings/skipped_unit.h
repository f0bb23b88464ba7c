// SPDX-License-Identifier: Apache-2.0
// A sharded unit that one side ran and the other did not: which side skipped it, and what decided.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// The waiting side gathers the parameters of a sharded unit that the other side skipped. Of two
/// equally large sides, the one that is further in the common function skipped it: makes it the odd
/// one.
bool skipped_a_unit(const graph::Examination& examination, Explanation& explanation);

/// The condition of each rank's own around the unit, or in the generator that yields it.
void read_choice_of_unit(const model::JobModel& job, Explanation& explanation);

/// One side has left a loop over batches in which the other still is; not one over parts of a
/// batch.
bool left_a_loop_of_steps(const graph::Examination& examination, const Explanation& explanation);

}  // namespace ddpdoctor::detectors
