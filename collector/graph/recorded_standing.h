// SPDX-License-Identifier: Apache-2.0
// Where a rank stands of which no process was seen: as far as its records tell.
#pragma once

#include "collector/graph/history.h"
#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// Absent when processes were looked for. Else the oldest call that has not ended is what the rank
/// waits in: with NCCL later ones are only queued behind it. Without one, it is past its newest.
Standing recorded_standing(const model::JobModel& job, const History& history, model::Rank rank);

/// How a rank ended whose process is gone or a zombie: kDead by a signal, kExited by itself; absent
/// when no exit was recorded.
std::optional<Activity> ended_as(const model::JobModel& job, model::Rank rank);

}  // namespace ddpdoctor::graph
