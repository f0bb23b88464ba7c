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

}  // namespace ddpdoctor::detectors
