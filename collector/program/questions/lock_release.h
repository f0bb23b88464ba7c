// SPDX-License-Identifier: Apache-2.0
// A lock that a function takes and does not release on some return or exception.
#pragma once

#include <optional>
#include <string>

#include "collector/program/questions/method_calls.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// A lock as the line that waits for it names it.
struct WantedLock {
  int line = 0;
  std::string name;
};

/// The line that leaves a function between `lock.acquire()` and `lock.release()`: on some path no
/// release lies between the two. Nothing where each return passes a release (`finally`, one in
/// each branch, a method that releases), or where the function never releases the lock. Locks are
/// compared as objects; a release of what may be the lock counts.
std::optional<int> leaves_without_release(const SourceText& text, const Sources& sources,
                                          const WantedLock& wanted);

}  // namespace ddpdoctor::program
