// SPDX-License-Identifier: Apache-2.0
// Threads that show no line of the user's: a Timer, a pool's. What made them, and where.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// Another thread of Python that is in the standard library alone; nullptr when there is none.
const model::Thread* library_thread(const model::Process& process, const model::Thread& main);

/// What starts such a thread in a program: "Timer(", "ThreadPoolExecutor(", "Thread(".
std::string_view thread_maker(const model::Thread& thread);

/// The only line of the sources that starts threads of this sort and makes no daemon.
model::CallSite only_start(const model::JobModel& job, std::string_view maker);

/// `def tick(): Timer(1, tick).start()`: it goes off for ever.
bool starts_itself(const model::JobModel& job, const model::CallSite& start);

}  // namespace ddpdoctor::detectors
