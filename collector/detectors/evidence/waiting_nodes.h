// SPDX-License-Identifier: Apache-2.0
// rendezvous-incomplete before there is a rank: torchrun's agents, one for each node, wait for each
// other and start nobody until all have come.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Nothing when no agent waits. No more than possible where the other nodes may be machines that we
/// do not see.
Findings waiting_nodes(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
