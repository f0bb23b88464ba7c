// SPDX-License-Identifier: Apache-2.0
// What keeps a process from ending whose program is over: a thread, a child, a function of atexit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

inline constexpr std::string_view kEndIt =
    "Give that thread daemon=True or a stop event, end child processes and pools before the "
    "program ends, and call destroy_process_group() on every rank.";

/// What the end of a process waits for: the thread or the process to blame, and a word for it.
struct Holdup {
  const model::Process* process = nullptr;
  const model::Thread* thread = nullptr;
  std::string what;
  std::string_view fix = kEndIt;
  model::CallSite start{};      // of a thread without a line of the user's: where it is started
  bool ends_by_itself = false;  // a timer that goes off once, a queue that is read slowly
};

/// A thread of Python with a line of the user's, other than the main thread. Daemons do not hold up
/// the end, but nothing tells them apart from outside; one that sits in user code is the best
/// candidate.
const model::Thread* user_thread(const model::Process& process, const model::Thread& main);

/// A thread whose end is waited for; one of the standard library with the line that starts it.
Holdup held_by(const model::JobModel& job, const model::Process& process,
               const model::Thread& thread);

/// Nothing when the main thread is still in its program.
std::optional<Holdup> holdup(const model::JobModel& job, const model::Process& process,
                             const model::Thread& main);

}  // namespace ddpdoctor::detectors
