// SPDX-License-Identifier: Apache-2.0
// Groups of Ray workers that one program started: actors that train, actors that generate. Each
// group counts its ranks from 0, and two of one number are no mistake.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// Where workers of different classes have the same ranks, only those of one class keep them: those
/// of the process that was asked for, else the most. Says which others there are.
std::optional<std::string> keep_one_worker_group(JobModel& job, pid_t asked);

}  // namespace ddpdoctor::model
