// SPDX-License-Identifier: Apache-2.0
// Communication backends that are written in Python: between the program and the wait, and no part
// of the program.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// Marks the frames of files that register a backend with torch.distributed, where they were called
/// by other files of the user.
void mark_backends(JobModel& job);

}  // namespace ddpdoctor::model
