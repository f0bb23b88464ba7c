// SPDX-License-Identifier: Apache-2.0
// Hosts that run the same code stop at the same line when their devices do not proceed. Without
// records, hosts that stop at two lines show where the ranks diverged, although not in which call
// the devices are.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// All ranks wait for their GPUs, at two places, several ranks at each: one rank alone may be at a
/// line that only it executes, such as rank 0 in its log. At most possible. Empty if calls were
/// recorded, the ranks have no common function, or they are stages of a pipeline.
Findings apart_behind_gpus(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
