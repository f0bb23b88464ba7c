// SPDX-License-Identifier: Apache-2.0
// Queries the RAS interface of a job's NCCL exactly twice: two equal answers indicate a hang, one
// alone proves little.
#pragma once

#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::monitor {

/// Two answers in JSON, one second apart. Empty if the calls of all ranks are known already,
/// if no process of the job listens as RAS, or if it does not answer; of the last the coverage
/// tells.
std::vector<std::string> two_ras_answers(model::JobModel& job);

}  // namespace ddpdoctor::monitor
