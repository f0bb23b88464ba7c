// SPDX-License-Identifier: Apache-2.0
// rendezvous-incomplete before any rank exists: torchrun's agents, one per node, wait for each
// other and start no rank until all have arrived.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Nothing if no agent waits. At most possible if the other nodes may be machines that were not
/// observed.
Findings waiting_nodes(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
