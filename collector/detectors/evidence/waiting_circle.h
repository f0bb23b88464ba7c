// SPDX-License-Identifier: Apache-2.0
// Of threads that can never go on, the ones to name: the shortest circle in which each waits for
// the next, or the semaphore that nobody is left to release.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/detectors/evidence/blocked_threads.h"

namespace ddpdoctor::detectors {

/// Members in order: each waits for the next, the last for the first. Of a `lost` object all that
/// wait at it, and everybody who could end that waits, too.
struct WaitingCircle {
  std::vector<const BlockedThread*> members;
  bool lost = false;
  std::size_t all = 0;  // threads of the knot
};

/// Nothing for a knot inside one process, or among ranks in collectives only: other detectors know
/// more of those.
std::optional<WaitingCircle> circle_of(const BlockedThreads& blocked,
                                       const std::vector<std::size_t>& knot);

/// "pipe", "semaphore", …; empty for waits at no kernel object.
std::string object_kind(const BlockedThread& member);

/// "rank 1" or "process 77".
std::string process_name(const model::Process& process);

/// The same; with its thread when `circle` has two of that process.
std::string member_name(const BlockedThread& member, const WaitingCircle& circle);

/// "waiting for process 77 to exit": what a member does, the next one named.
std::string waiting_words(const BlockedThread& member, const std::string& next);

}  // namespace ddpdoctor::detectors
