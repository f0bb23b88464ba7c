// SPDX-License-Identifier: Apache-2.0
// The marks of all nodes as `ddpdoctor watch` shows a job.
#pragma once

#include <string>

#include "collector/fleet/job_state.h"
#include "collector/graph/live.h"

namespace ddpdoctor::fleet {

graph::LiveView live_view(const JobState& state, const std::string& job, double now);

}  // namespace ddpdoctor::fleet
