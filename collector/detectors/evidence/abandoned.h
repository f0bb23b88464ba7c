// SPDX-License-Identifier: Apache-2.0
// Finds threads that wait for a pipe, a socket or a semaphore that no other process holds any more:
// no other process can end the wait.
#pragma once

#include "collector/detectors/evidence/blocked_threads.h"

namespace ddpdoctor::detectors {

/// How a thread's wait can end.
enum class Hope {
  kGoesOn,     // a running thread, a timeout or another rank can end it, or its object is unknown
  kStuck,      // it cannot end: every thread that could end it is waiting too
  kAbandoned,  // it cannot end: no process but the thread's own holds the object
};

/// Follows the thread's wait through other threads of its process. Returns kGoesOn for a thread
/// that waits for other ranks in a collective.
Hope hope_of(const BlockedThreads& blocked, const model::Thread& thread);

}  // namespace ddpdoctor::detectors
