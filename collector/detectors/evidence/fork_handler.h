// SPDX-License-Identifier: Apache-2.0
// A fork that does not return, because a function that a library registered with pthread_atfork
// waits for the library's own threads.
#pragma once

#include <optional>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

struct ForkHandler {
  const model::Frame* handler = nullptr;  // the function that libc called
  const model::Frame* wait = nullptr;     // the innermost function of a library
};

/// Nothing if the thread is not in a handler that runs before the fork or in the parent, or if the
/// handler does not wait.
std::optional<ForkHandler> handler_of_fork(const model::Thread& thread);

}  // namespace ddpdoctor::detectors
