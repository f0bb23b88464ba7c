// SPDX-License-Identifier: Apache-2.0
// Where a training loop stores the batches of a DataLoader: with the file_system strategy, each
// tensor is a file in /dev/shm for as long as it is referenced.
#pragma once

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The statement in a loop around the user's frames of `thread` that stores the loop's items in an
/// object that outlives the iteration; unknown if there is none.
model::CallSite keeps_batches(const model::JobModel& job, const model::Thread& thread);

/// `set_sharing_strategy("file_system")` in the user's files; unknown if it is absent.
model::CallSite chooses_file_system(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
