// SPDX-License-Identifier: Apache-2.0
// What torch.distributed writes when a collective fails or times out → calls of the job.
#pragma once

#include <optional>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// What the calls that a log tells of rest on. A mismatch names two ranks and is silent on others.
enum class Told { kNothing, kTimeouts, kMismatch, kBarrier };

/// Watchdog timeouts of NCCL, DETAIL's mismatches, monitored_barrier. `rank` is that of the whole
/// log when lines do not name one.
Told read_c10d_text(std::string_view log, std::optional<model::Rank> rank, model::JobModel& job);

}  // namespace ddpdoctor::imports
