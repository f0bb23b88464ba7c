// SPDX-License-Identifier: Apache-2.0
// What of a job was seen, and what was not and why.
#pragma once

#include "collector/model/building/build_model.h"

namespace ddpdoctor::model {

/// Says it of the newest look; `job` must have its observations and world size. Ranks that should
/// run here and have no process are absent, not unobserved; ranks of other machines are unobserved.
Coverage coverage_of(const JobModel& job, const std::vector<Look>& looks);

}  // namespace ddpdoctor::model
