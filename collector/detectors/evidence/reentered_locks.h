// SPDX-License-Identifier: Apache-2.0
// A library function takes a plain lock that the same thread took further out: a signal handler or
// a destructor ran between two of its lines and called the library again.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/finding.h"

namespace ddpdoctor::detectors {

/// The two functions of one library file on one stack.
struct ReenteredLock {
  const model::Frame* taker = nullptr;   // waits for the lock
  const model::Frame* holder = nullptr;  // further out: has it
  const model::Frame* entry = nullptr;   // the first function that the library did not call
  std::string_view lock;                 // "_shutdown_lock"
  bool destructor = false;               // the entry is run by reference counts or the collector
  bool handler = false;                  // the sources register the entry for a signal
};

/// Absent unless the innermost Python function waits for such a lock.
std::optional<ReenteredLock> reentered_lock(const model::JobModel& job,
                                            const model::Thread& thread);

/// The finding about a thread of this process; absent if there is none.
std::optional<Finding> waits_for_own_lock(const graph::Examination& examination,
                                          const model::Process& process, Confidence still);

}  // namespace ddpdoctor::detectors
