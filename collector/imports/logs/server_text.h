// SPDX-License-Identifier: Apache-2.0
// What servers and launchers with a supervisor of their own say of the end of a rank: SGLang, TGI,
// composer.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// "Rank 1 scheduler is dead. …" and "Exit code: -9" below it, "Shard process was signaled to
/// shutdown with signal 9 rank=0", "Rank 3 crashed with exit code 1." → ended processes. "Scheduler
/// watchdog timeout (…)" of SGLang → a fact.
void read_server_text(std::string_view log, model::JobModel& job);

}  // namespace ddpdoctor::imports
