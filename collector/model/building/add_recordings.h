// SPDX-License-Identifier: Apache-2.0
// What agents recorded → JobModel. Added to what stacks and /proc told, or alone when nobody is
// left to look at.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// Recorded calls replace what was read of the same ranks from memory: an agent sees more and
/// numbers alike. Processes that were recorded and are not in the newest observation are added to
/// it with their ends. Group ranks become global ranks.
void add_recordings(JobModel& job, const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
