// SPDX-License-Identifier: Apache-2.0
// Waits for the device that no frame names: dumps without native frames end in the Python line.
#pragma once

#include <vector>

#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// In dumps without native frames, ranks of a GPU job whose whole stacks are equal, down to a line
/// that calls nothing in Python, count as waiting for their GPUs in that line: ranks at work would
/// be at different lines. Not if all ranks have that stack. The same holds for a rank inside
/// torch's code for tensors while another rank waits, and for any such line if nvidia-smi shows all
/// GPUs busy.
void take_shared_stands(const model::JobModel& job, std::vector<Standing>& standings);

}  // namespace ddpdoctor::graph
