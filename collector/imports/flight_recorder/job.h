// SPDX-License-Identifier: Apache-2.0
// Dumps of many ranks → one JobModel.
#pragma once

#include <vector>

#include "collector/imports/flight_recorder/parts.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Wants one dump for each rank, in rank order.
model::JobModel job_of_dumps(const std::vector<Dump>& dumps, const Vocabulary& vocabulary);

/// Still: somebody waits, and nobody had enqueued anything for a while when the dumps were written.
void judge_progress(const std::vector<Dump>& dumps, model::JobModel& job);

/// Wants the job's world size.
void tell_coverage(const std::vector<Dump>& dumps, model::JobModel& job);

}  // namespace ddpdoctor::imports
