// SPDX-License-Identifier: Apache-2.0
// What is still there when the command that `ddpdoctor run` started has ended: processes that
// outlive who started them, and segments of shared memory that nobody removed.
#pragma once

#include <vector>

#include <sys/types.h>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::monitor {

/// Processes below us that live on, observed, with an "orphan" fact each: after a command that
/// failed all of them, after a time to end by themselves; after one that succeeded those whose
/// recorded parent was killed (who starts a daemon ends by itself).
model::JobModel processes_left(pid_t command, int status,
                               const std::vector<sources::Recording>& recordings);

/// Takes out the recordings of processes that live on and are no orphans: of a job that was sent
/// into the background nothing has ended, and its open calls are not its last.
void forget_daemons(const model::JobModel& left, std::vector<sources::Recording>& recordings);

/// Marks with "left_behind" each recorded shm-segment fact of `job` whose file is still there and
/// that nobody uses. Waits a moment for helpers of the job that end after it and remove segments;
/// as long as one of them lives, nothing is called left.
void mark_segments_left(model::JobModel& job);

}  // namespace ddpdoctor::monitor
