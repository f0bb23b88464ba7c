// SPDX-License-Identifier: Apache-2.0
// The state of a rank that has no process in the evidence, from its records.
#pragma once

#include "collector/graph/history.h"
#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// kAbsent if its process was searched for. Otherwise the rank waits in its oldest call that has
/// not ended: with NCCL, later calls are only queued behind it. Without such a call, the rank is
/// past its newest call.
Standing recorded_standing(const model::JobModel& job, const History& history, model::Rank rank);

/// How a rank ended whose process is missing or a zombie: kDead by a signal, kExited by itself;
/// nothing if no exit was recorded.
std::optional<Activity> ended_as(const model::JobModel& job, model::Rank rank);

}  // namespace ddpdoctor::graph
