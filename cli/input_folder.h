// SPDX-License-Identifier: Apache-2.0
// A folder that somebody gave: which files in it are looked at, and which are not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::cli {

/// What lies below a folder.
struct FolderContents {
  std::vector<std::string> files;  // by name; neither hidden ones nor texts of programs
  std::vector<std::string> spools;
  std::vector<std::string> too_deep;  // folders that hold something and were not looked into
  bool cut = false;                   // there was more than is looked at
};

/// Regular files of a folder and of the folders in it. Links to folders are not followed.
base::Result<FolderContents> contents_of(const std::string& folder);

/// Its name is that of a program or of a page about one: the messages in it were met by nobody.
bool is_named_like_source(std::string_view path);
/// The same of a program only: a page may quote the output of a job.
bool is_named_like_program(std::string_view path);

}  // namespace ddpdoctor::cli
