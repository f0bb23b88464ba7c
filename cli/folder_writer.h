// SPDX-License-Identifier: Apache-2.0
// Folders of dumps that are either written whole or not at all.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::cli {

/// The files of one rendering, one for each rank.
struct Folder {
  std::vector<std::pair<std::string, std::string>> files;  // "rank_3" and its contents
  double time = 0;                 // when what they tell was so, seconds since the epoch; 0 = now
  std::vector<std::string> notes;  // what the person should know of them
};

/// Whether `path` can become such a folder: there is nothing yet, or nothing but files rank_N. The
/// error names the path and the reason.
base::Result<void> check_writable_folder(const std::string& path);

/// Writes a folder beside `path`, flushes it to disk and renames it; files rank_N that were there
/// are gone then. On failure `path` is as it was.
base::Result<void> write_whole_folder(const std::string& path, const Folder& folder);

}  // namespace ddpdoctor::cli
