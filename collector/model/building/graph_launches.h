// SPDX-License-Identifier: Apache-2.0
// CUDA graphs with calls of NCCL: the calls inside run at each launch and are recorded at the
// capture only, but the agent counts the launches.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// Says in the coverage how often each rank launched them, and adds the newest launch of each rank
/// as a call, numbered by the rank's count, of a group of its own: the ranks that are members of
/// the same communicators launch equally often. Nothing is added where their counts are equal, or
/// where one of these ranks was not recorded.
void add_graph_launches(JobModel& job);

}  // namespace ddpdoctor::model
