// SPDX-License-Identifier: Apache-2.0
// Selects what to name among threads that can never continue: the shortest cycle of waits, or the
// semaphore that no remaining thread can release.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/detectors/evidence/blocked_threads.h"

namespace ddpdoctor::detectors {

/// Members in order: each waits for the next, the last for the first. For a `lost` object: all
/// threads that wait for it; every thread that could end that wait waits, too.
struct WaitingCircle {
  std::vector<const BlockedThread*> members;
  bool lost = false;
  std::size_t all = 0;  // number of threads in the knot
};

/// Nothing for a knot inside one process, or only of ranks in collectives: other detectors report
/// these in more detail.
std::optional<WaitingCircle> circle_of(const BlockedThreads& blocked,
                                       const std::vector<std::size_t>& knot);

/// "pipe", "semaphore", …; empty for waits without a kernel object.
std::string object_kind(const BlockedThread& member);

/// "rank 1" or "process 77".
std::string process_name(const model::Process& process);

/// The same, with the thread if `circle` has two threads of that process.
std::string member_name(const BlockedThread& member, const WaitingCircle& circle);

/// "waiting for process 77 to exit": what a member does; `next` is the awaited member.
std::string waiting_words(const BlockedThread& member, const std::string& next);

}  // namespace ddpdoctor::detectors
