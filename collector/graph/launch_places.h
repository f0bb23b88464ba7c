// SPDX-License-Identifier: Apache-2.0
// DDP and FSDP make calls from a thread of autograd, which has no frame of the user: their records
// name no line. The rank's next recorded line, or where its host stands, and the source show which
// backward() it was.
#pragma once

#include "collector/graph/history.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// Gives calls of a backward without a line that of the backward() before the rank's next known
/// line, if the source leaves one choice. Nothing changes where no call of the job has a line: then
/// lines were not recorded.
void place_launches(const model::JobModel& job, History& history);

}  // namespace ddpdoctor::graph
