// SPDX-License-Identifier: Apache-2.0
// With a nonblocking communicator, the rank polls NCCL for the state of its call. Such a thread
// waits for the call although its lines change and it may use a whole core.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// WaitsOn::kind of a thread that polls; the target is the id of the call's group.
inline constexpr const char* kPolledCall = "communicator";

/// True if any thread of these processes polled NCCL and the answer was "in progress".
bool some_call_is_polled(const std::vector<sources::Recording>& recordings);

/// Marks, in the two newest snapshots, the threads that polled since the snapshot before, and
/// determines again whether the job makes progress. `recordings` must have been read after the
/// snapshots.
void mark_polled_calls(JobModel& job, const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
