// SPDX-License-Identifier: Apache-2.0
// A lock that a function takes and does not release on some return or exception.
#pragma once

#include <optional>
#include <string_view>

#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {

/// The line that leaves a function between `lock.acquire()` and `lock.release()`; nothing where
/// each return passes the release (`with`, `finally`), or none is seen.
std::optional<int> leaves_without_release(const program::SourceText& lines, std::string_view lock);

}  // namespace ddpdoctor::detectors
