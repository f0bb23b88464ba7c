// SPDX-License-Identifier: Apache-2.0
// A lock that a function takes and does not release on some return or exception.
#pragma once

#include <optional>
#include <string_view>

#include "collector/program/questions/method_calls.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The line that leaves a function between `lock.acquire()` and `lock.release()`: on some path no
/// release lies between the two. Nothing where each return passes a release (`finally`, one in
/// each branch, a method that releases), or where the function never releases the lock.
std::optional<int> leaves_without_release(const SourceText& text, const Sources& sources,
                                          std::string_view lock);

}  // namespace ddpdoctor::program
