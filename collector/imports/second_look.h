// SPDX-License-Identifier: Apache-2.0
// Two captures of one job at two times: the same processes, observed again.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// True if some process is in both: its machine, pid and start time are known in each and are
/// equal.
bool show_one_process(const model::JobModel& a, const model::JobModel& b);

/// Ranks that are different processes in the two captures, as far as known.
model::RankSet ranks_of_other_processes(const model::JobModel& a, const model::JobModel& b);

/// For captures that share a process: the newer one has priority, and the older one adds what only
/// it has: calls, source lines, machines. `whole` receives the result.
void join_looks(model::JobModel& whole, model::JobModel part);

}  // namespace ddpdoctor::imports
