// SPDX-License-Identifier: Apache-2.0
// Reads what torch.distributed writes when a collective fails or times out, as calls of the job.
#pragma once

#include <optional>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// The kind of message that the calls of a log come from. A mismatch names two ranks and says
/// nothing about others.
enum class Told { kNothing, kTimeouts, kMismatch, kBarrier };

/// Watchdog timeouts of NCCL, DETAIL's mismatches, monitored_barrier. `rank` is the rank of the
/// whole log, for lines that name none.
Told read_c10d_text(std::string_view log, std::optional<model::Rank> rank, model::JobModel& job);

}  // namespace ddpdoctor::imports
