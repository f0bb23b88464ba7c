// SPDX-License-Identifier: Apache-2.0
// Shortens a capture for the network: only the end of a long history is sent.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::fleet {

/// Returns `job` unchanged if it is small; otherwise keeps the newest calls of each rank and group,
/// and all calls that are not completed.
model::JobModel without_old_calls(const model::JobModel& job);

}  // namespace ddpdoctor::fleet
