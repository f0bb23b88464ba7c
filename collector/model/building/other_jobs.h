// SPDX-License-Identifier: Apache-2.0
// Two jobs below one command, such as a sweep or two trainings in one script: their ranks have the
// same numbers, and calls of one must not be compared with calls of the other.
#pragma once

#include <set>
#include <vector>

#include <sys/types.h>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// Processes of jobs other than the diagnosed one, including what they started. Of several complete
/// jobs, the running one is diagnosed, else one that failed, else the one that ended last. Empty if
/// there is one job or the jobs cannot be told apart.
std::set<pid_t> of_other_jobs(const JobModel& job,
                              const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
