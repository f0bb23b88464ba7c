// SPDX-License-Identifier: Apache-2.0
// Ranks that have no process any more and of whose end nothing was seen.
#pragma once

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Ranks without a process although others are past the rendezvous, which needed them.
model::RankSet vanished(const graph::Examination& examination);

/// The look covered whole machines: a launcher is among what was seen, or the looker says what it
/// observed. A list of some ranks, written by hand, does not show that the others are gone.
bool looked_at_all(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
