// SPDX-License-Identifier: Apache-2.0
// What a process recorded besides its collectives, as facts of the job.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// Reducers, thread pools and CUDA before forks, shared memory, failures for want of descriptors or
/// room, and the tail of standard error.
void add_recorded_facts(JobModel& job, const sources::Recording& recording);

/// The user's lines of a recorded stack, innermost first.
std::vector<CallSite> user_sites(const std::vector<sources::RecordedFrame>& stack);

/// The last words of former lives of a job that was started again: none of its present logs, but
/// perhaps why it is.
void add_former_output(JobModel& job, const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
