// SPDX-License-Identifier: Apache-2.0
// Shared memory that other jobs left on this machine, for the closing note of a job that has ended:
// none of its processes is left whose surroundings could be read.
#pragma once

#include "collector/leftovers/leftover.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::cli {

/// Adds a shm-segment fact for each unused segment whose creator has exited. Segments that this job
/// recorded as its own are left out.
void add_left_by_others(model::JobModel& job, const leftovers::Scope& scope);

}  // namespace ddpdoctor::cli
