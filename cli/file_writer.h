// SPDX-License-Identifier: Apache-2.0
// Writes files either completely or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ddpdoctor::cli {

/// Checks in the folder of `path` whether it could be written; leaves nothing behind. The error
/// names the path and the reason.
base::Result<void> check_writable(const std::string& path);

/// Writes a temporary file next to `path`, flushes it to disk and renames it. On failure `path` is
/// unchanged.
base::Result<void> write_whole(const std::string& path, std::string_view text);

}  // namespace ddpdoctor::cli
