// SPDX-License-Identifier: Apache-2.0
// Barriers whose messages name their members: torch's store-based barrier, and the barriers of the
// coordination service of JAX.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Adds a fact "roll-call" for each barrier at which the log ends and of which it tells which ranks
/// did not reach it. Fields: barrier, line, absent and came (ranks as text), first (true: ranks
/// meet there for the first time).
void read_roll_calls(std::string_view log, model::JobModel& job);

}  // namespace ddpdoctor::imports
