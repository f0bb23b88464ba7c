// SPDX-License-Identifier: Apache-2.0
// Which actor or worker of Ray ended, according to the lines below ActorDiedError or the raylet's
// message.
#pragma once

#include <optional>

#include "collector/detectors/evidence/remote_tracebacks.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The first one that the logs name with its pid.
std::optional<Remote> lost_actor(const model::JobModel& job);

/// The rank that a worker of Ray wrote in its own lines: "(RayTrainWorker pid=5137, ip=10.1.1.5) …
/// [rank=1, world_size=2]".
std::optional<model::Rank> rank_of_actor(const model::JobModel& job, const Remote& actor);

}  // namespace ddpdoctor::detectors
