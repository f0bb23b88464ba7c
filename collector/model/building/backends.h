// SPDX-License-Identifier: Apache-2.0
// Communication backends written in Python: their frames are between the program and the wait, and
// are not the program.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// Marks the frames of files that register a backend with torch.distributed, if other files of the
/// user called them.
void mark_backends(JobModel& job);

}  // namespace ddpdoctor::model
