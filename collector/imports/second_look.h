// SPDX-License-Identifier: Apache-2.0
// Two captures of one job at two times: the same processes, looked at again.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// True when some process is in both: its machine, its number and when it was started are known in
/// each and agree.
bool show_one_process(const model::JobModel& a, const model::JobModel& b);

/// Ranks that are one process in the one and another in the other, as far as that is known.
model::RankSet ranks_of_other_processes(const model::JobModel& a, const model::JobModel& b);

/// For captures that show one process: what the newer one says holds, and the older one adds what
/// only it knows: calls, source lines, machines. `whole` gets the result.
void join_looks(model::JobModel& whole, model::JobModel part);

}  // namespace ddpdoctor::imports
