// SPDX-License-Identifier: Apache-2.0
// Adds what agents recorded to a JobModel, which may already hold stacks and facts of /proc or may
// be empty after the job's end.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// Recorded calls replace calls that were read from the memory of the same ranks: an agent sees
/// more, and its numbers are comparable. Recorded processes that are not in the newest observation
/// are added with their exits. Group ranks become global ranks.
void add_recordings(JobModel& job, const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
