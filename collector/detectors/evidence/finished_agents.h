// SPDX-License-Identifier: Apache-2.0
// Logs of several nodes: torch's agent on one says that all its ranks finished with success, and a
// rank on another lost its connection.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// A rank-exited of the ranks that finished; none if every log of an agent tells success, or none
/// does. Likely if the agent's log names them, else possible and without culprits.
Findings finished_before_others(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
