// SPDX-License-Identifier: Apache-2.0
// Builds one JobModel from the dumps of many ranks.
#pragma once

#include <vector>

#include "collector/imports/flight_recorder/parts.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Needs one dump per rank, in rank order.
model::JobModel job_of_dumps(const std::vector<Dump>& dumps, const Vocabulary& vocabulary);

/// Still: a rank waits, and no rank had enqueued a call for some time when the dumps were written.
void judge_progress(const std::vector<Dump>& dumps, model::JobModel& job);

/// Needs the job's world size.
void tell_coverage(const std::vector<Dump>& dumps, model::JobModel& job);

}  // namespace ddpdoctor::imports
