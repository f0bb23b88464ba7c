// SPDX-License-Identifier: Apache-2.0
// What NCCL's RAS answered, added to what was seen of the job.
#pragma once

#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::cli {

/// The fact nccl-ras; and, when both answers count the same calls and nothing better is known of
/// the calls, those counts.
void add_ras(model::JobModel& job, const std::vector<std::string>& answers);

}  // namespace ddpdoctor::cli
