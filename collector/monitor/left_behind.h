// SPDX-License-Identifier: Apache-2.0
// What remains after the command of `ddpdoctor run` has ended: processes that outlive their parent,
// and shared-memory segments that were not removed.
#pragma once

#include <vector>

#include <sys/types.h>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::monitor {

/// The processes below us that are still running, each observed and with an "orphan" fact. After a
/// failed command: all of them, once they had time to exit. After a successful one: those whose
/// recorded parent was killed (a parent that starts a daemon exits by itself).
model::JobModel processes_left(pid_t command, int status,
                               const std::vector<sources::Recording>& recordings);

/// Removes the recordings of processes that still run and are not orphans: a job that was sent to
/// the background has not ended, and its open calls are not its last ones.
void forget_daemons(const model::JobModel& left, std::vector<sources::Recording>& recordings);

/// Marks with "left_behind" each recorded shm-segment fact of `job` whose file still exists and is
/// unused. Waits briefly for helpers of the job that exit after it and remove segments; while any
/// of them runs, nothing is marked.
void mark_segments_left(model::JobModel& job);

}  // namespace ddpdoctor::monitor
