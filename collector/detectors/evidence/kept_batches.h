// SPDX-License-Identifier: Apache-2.0
// Where a training loop keeps what a DataLoader gives it: each tensor is a file in /dev/shm under
// the file_system strategy, for as long as somebody has it.
#pragma once

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The statement in a loop around the user's frames of `thread` that puts what the loop iterates
/// over into something that lives on; unknown when there is none.
model::CallSite keeps_batches(const model::JobModel& job, const model::Thread& thread);

/// `set_sharing_strategy("file_system")` in the user's files; unknown when it is not there.
model::CallSite chooses_file_system(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
