// SPDX-License-Identifier: Apache-2.0
// A communicator that does not block answers at once, and the rank asks NCCL in a loop how its call
// goes. Such a thread waits for the call, although its lines change and it may use a whole core.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// What WaitsOn::kind says of a thread that polls; the target is the id of the call's group.
inline constexpr const char* kPolledCall = "communicator";

/// Whether a thread of these processes has asked NCCL and was answered "in progress".
bool some_call_is_polled(const std::vector<sources::Recording>& recordings);

/// Marks, in the newest two looks, the threads that asked since the look before the newest one, and
/// says anew whether the job moves. `recordings` are those that were read after the looks.
void mark_polled_calls(JobModel& job, const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
