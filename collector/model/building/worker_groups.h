// SPDX-License-Identifier: Apache-2.0
// Groups of Ray workers that one program started, such as actors for training and actors for
// generation. Each group counts its ranks from 0, so equal ranks in two groups are correct.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// If workers of different classes have the same ranks, only one class keeps them: that of the
/// requested process, else the largest. Returns a sentence about the other classes.
std::optional<std::string> keep_one_worker_group(JobModel& job, pid_t asked);

}  // namespace ddpdoctor::model
