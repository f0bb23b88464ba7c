// SPDX-License-Identifier: Apache-2.0
// What keeps a finished program's process from exiting: a thread, a child, an atexit function.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

inline constexpr std::string_view kEndIt =
    "Give that thread daemon=True or a stop event. End child processes and pools before the "
    "program "
    "ends, and call destroy_process_group() on every rank.";

/// What the exit of a process waits for: the thread or process to blame, and a word for it.
struct Holdup {
  const model::Process* process = nullptr;
  const model::Thread* thread = nullptr;
  std::string what;
  std::string_view fix = kEndIt;
  model::CallSite start{};      // for a thread without a user line: where it is started
  bool ends_by_itself = false;  // a one-shot timer, or a queue that is read slowly
};

/// A Python thread with a user line, other than the main thread. Daemon threads do not block the
/// exit but cannot be recognized from outside; a thread in user code is the best candidate.
const model::Thread* user_thread(const model::Process& process, const model::Thread& main);

/// The thread whose end is awaited; for a standard-library thread, with the line that starts it.
Holdup held_by(const model::JobModel& job, const model::Process& process,
               const model::Thread& thread);

/// Nothing if the main thread is still in its program.
std::optional<Holdup> holdup(const model::JobModel& job, const model::Process& process,
                             const model::Thread& main);

}  // namespace ddpdoctor::detectors
