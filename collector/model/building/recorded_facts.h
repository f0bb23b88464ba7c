// SPDX-License-Identifier: Apache-2.0
// What a process recorded besides its collectives, as facts of the job.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// Adds reducers, thread pools and CUDA before forks, shared memory, failures due to missing
/// descriptors or space, and the end of standard error.
void add_recorded_facts(JobModel& job, const sources::Recording& recording);

/// The user's frames of a recorded stack, innermost first.
std::vector<CallSite> user_sites(const std::vector<sources::RecordedFrame>& stack);

/// Adds the last output of previous attempts of a restarted job: not part of its current logs, but
/// it may show the reason for the restart.
void add_former_output(JobModel& job, const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
