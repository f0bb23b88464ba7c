// SPDX-License-Identifier: Apache-2.0
// Checks paths in the file system as a process sees it: whether a path exists, is a file or a
// folder, and which entries a folder has. The process checked earlier, so the answer is only a
// hint. Only folders are opened for reading. Paths on a network file system or through symbolic
// links are not checked, because such a call could hang.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "collector/sources/files/mounts.h"
#include "collector/values/value.h"

namespace ddpdoctor::values {

/// Answers for the files of one process.
class FileAnswers {
 public:
  explicit FileAnswers(pid_t pid) : pid_(pid) {}

  /// `question` is the name of a function of os.path, os or pathlib.Path. Returns nothing if the
  /// question is not supported or the path must not be checked.
  std::optional<Value> ask(std::string_view question, const std::string& path);

 private:
  bool is_local(const std::string& path);

  pid_t pid_;
  std::optional<std::vector<sources::Mount>> mounts_;
  int asked_ = 0;
};

}  // namespace ddpdoctor::values
