// SPDX-License-Identifier: Apache-2.0
// Two jobs below one command, a sweep or two trainings in one script: their ranks have the same
// numbers, and what one did must not be held against the other.
#pragma once

#include <set>
#include <vector>

#include <sys/types.h>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// Processes that belong to another job than the one that is told, with what they started: of
/// several whole jobs those are told that are alive, else those that failed, else the one that
/// ended last. Empty: there is one job, or nobody can tell.
std::set<pid_t> of_other_jobs(const JobModel& job,
                              const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
