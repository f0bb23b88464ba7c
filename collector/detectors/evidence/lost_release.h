// SPDX-License-Identifier: Apache-2.0
// Finds a lock that a function takes and does not release before some `return` or `raise`.
#pragma once

#include <optional>
#include <string_view>

#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {

/// The `return` or `raise` between `lock.acquire()` and `lock.release()` in one function. Returns
/// nothing if there is no such line, or if a `finally` releases the lock.
std::optional<int> leaves_without_release(const program::SourceText& lines, std::string_view lock);

}  // namespace ddpdoctor::detectors
