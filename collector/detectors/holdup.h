// SPDX-License-Identifier: Apache-2.0
// What keeps a process from ending whose program is over: a thread, a child, a function of atexit.
#pragma once

#include <optional>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// What the end of a process waits for: the thread or the process to blame, and a word for it.
struct Holdup {
  const model::Process* process = nullptr;
  const model::Thread* thread = nullptr;
  std::string what;
};

/// A thread of Python with a line of the user's, other than the main thread. Daemons do not hold up
/// the end, but nothing tells them apart from outside; one that sits in user code is the best
/// candidate.
const model::Thread* user_thread(const model::Process& process, const model::Thread& main);

/// Nothing when the main thread is still in its program.
std::optional<Holdup> holdup(const model::JobModel& job, const model::Process& process,
                             const model::Thread& main);

}  // namespace ddpdoctor::detectors
