// SPDX-License-Identifier: Apache-2.0
// DDP and fully sharded modules make their calls of backward from a thread of autograd, which has
// no frame of the user: its records name no line. The rank's next recorded line, or where its host
// stands, and the source show which backward() it was.
#pragma once

#include "collector/graph/history.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// Gives the calls of backward without a line that of the backward() before the rank's next known
/// line, if the source leaves one choice. Nothing changes where no call of the job has a line: then
/// lines were not recorded.
void place_launches(const model::JobModel& job, History& history);

}  // namespace ddpdoctor::graph
