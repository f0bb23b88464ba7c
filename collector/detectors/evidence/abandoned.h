// SPDX-License-Identifier: Apache-2.0
// Threads that wait at a pipe, a socket or a semaphore whose other end nobody has any more: no
// process is left that could end the wait.
#pragma once

#include "collector/detectors/evidence/blocked_threads.h"

namespace ddpdoctor::detectors {

/// How a thread's wait can end.
enum class Hope {
  kGoesOn,     // by itself or by a thread that runs; or it is not known what it waits for
  kStuck,      // never: every thread that could end it waits, too
  kAbandoned,  // never: only its own process has what it waits at
};

/// Of the thread, with what the threads of its process wait for, when it waits for one of them.
/// kGoesOn for a thread that waits in a collective for other ranks.
Hope hope_of(const BlockedThreads& blocked, const model::Thread& thread);

}  // namespace ddpdoctor::detectors
