// SPDX-License-Identifier: Apache-2.0
// Files that are either written whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ddpdoctor::cli {

/// Whether `path` could be written, tried in its folder; nothing is left behind. The error names
/// the path and the reason.
base::Result<void> check_writable(const std::string& path);

/// Writes a temporary file beside `path`, flushes it to disk and renames it. On failure `path` is
/// as it was.
base::Result<void> write_whole(const std::string& path, std::string_view text);

}  // namespace ddpdoctor::cli
