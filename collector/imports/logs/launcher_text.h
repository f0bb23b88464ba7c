// SPDX-License-Identifier: Apache-2.0
// Messages of launchers other than torchrun about ranks that ended: mpirun, srun, torch's spawn,
// Lightning.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// "mpirun noticed that process rank 1 …", "srun: error: node1: task 1: Killed", "process 1
/// terminated with signal SIGKILL" → ended processes. Omits processes that a launcher ended.
void read_launcher_text(std::string_view log, model::JobModel& job);

}  // namespace ddpdoctor::imports
