// SPDX-License-Identifier: Apache-2.0
// Threads without a user line, such as a Timer or a pool thread: what created them, and where.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// Another Python thread that is only in standard-library code; nullptr if there is none.
const model::Thread* library_thread(const model::Process& process, const model::Thread& main);

/// The call that creates such a thread: "Timer(", "ThreadPoolExecutor(", "Thread(".
std::string_view thread_maker(const model::Thread& thread);

/// The only source line that starts threads of this kind other than daemons.
model::CallSite only_start(const model::JobModel& job, std::string_view maker);

/// `def tick(): Timer(1, tick).start()`: it restarts itself forever.
bool starts_itself(const model::JobModel& job, const model::CallSite& start);

}  // namespace ddpdoctor::detectors
