// SPDX-License-Identifier: Apache-2.0
// Writes folders of dumps either completely or not at all.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::cli {

/// The files of one rendering, one per rank.
struct Folder {
  std::vector<std::pair<std::string, std::string>> files;  // "rank_3" and its content
  double time = 0;                 // time of their content, seconds since the epoch; 0 = now
  std::vector<std::string> notes;  // notes for the user
};

/// Checks whether `path` can become such a folder: it does not exist, or contains only files
/// rank_N. The error names the path and the reason.
base::Result<void> check_writable_folder(const std::string& path);

/// Writes a folder next to `path`, flushes it to disk and renames it; existing files rank_N are
/// removed. On failure `path` is unchanged.
base::Result<void> write_whole_folder(const std::string& path, const Folder& folder);

}  // namespace ddpdoctor::cli
