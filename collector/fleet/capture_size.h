// SPDX-License-Identifier: Apache-2.0
// A capture for the network: of a long history, only the end is sent.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::fleet {

/// `job` as it is when it is small; else with the newest calls of each rank and group, and those
/// that are not over.
model::JobModel without_old_calls(const model::JobModel& job);

}  // namespace ddpdoctor::fleet
