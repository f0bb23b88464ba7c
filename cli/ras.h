// SPDX-License-Identifier: Apache-2.0
// Adds the answers of NCCL's RAS to the job.
#pragma once

#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::cli {

/// Adds the fact nccl-ras and, if both answers count the same calls and no better evidence of the
/// calls exists, these counts.
void add_ras(model::JobModel& job, const std::vector<std::string>& answers);

}  // namespace ddpdoctor::cli
