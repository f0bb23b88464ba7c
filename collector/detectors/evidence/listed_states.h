// SPDX-License-Identifier: Apache-2.0
// What a table of processes shows where no stack is known: children that have ended and whose
// parent does not collect them, programs that a signal stopped, and ranks in uninterruptible sleep.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// One finding per parent.
Findings listed_zombies(const graph::Examination& examination, std::string_view kind);

/// One finding for all that are stopped.
Findings listed_stops(const graph::Examination& examination, std::string_view kind);

/// One finding per process in state D while the others of its command are not, and wait for a rank.
Findings listed_sleepers(const graph::Examination& examination, std::string_view kind);

}  // namespace ddpdoctor::detectors
