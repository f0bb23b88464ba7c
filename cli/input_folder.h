// SPDX-License-Identifier: Apache-2.0
// Which files of a given folder are read, and which are not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::cli {

/// The content of a folder.
struct FolderContents {
  std::vector<std::string> files;  // ordered by name; without hidden files and texts of programs
  std::vector<std::string> spools;
  std::vector<std::string> too_deep;  // folders with content that were too deep to read
  bool cut = false;                   // there were more entries than the limit
};

/// Regular files of a folder and its subfolders. Links to folders are not followed.
base::Result<FolderContents> contents_of(const std::string& folder);

/// Named like a program or a page about one: the messages in it are not from a job.
bool is_named_like_source(std::string_view path);
/// Named like a program: unlike a page, it does not quote the output of a job.
bool is_named_like_program(std::string_view path);

}  // namespace ddpdoctor::cli
