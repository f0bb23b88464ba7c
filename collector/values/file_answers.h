// SPDX-License-Identifier: Apache-2.0
// What the file system of a process answers now: whether a path is there, a file, a folder, how
// many entries a folder has. The process asked earlier, so that this is never more than a hint.
// Nothing is opened for reading but folders; paths on a server and through links are not followed,
// because such a call could hang.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "collector/sources/files/mounts.h"
#include "collector/values/value.h"

namespace ddpdoctor::values {

/// Files as one process sees them.
class FileAnswers {
 public:
  explicit FileAnswers(pid_t pid) : pid_(pid) {}

  /// `question`: the name of the function of os.path, os or pathlib.Path that asks. Nothing when
  /// it is not known here, or when the path is not looked at.
  std::optional<Value> ask(std::string_view question, const std::string& path);

 private:
  bool is_local(const std::string& path);

  pid_t pid_;
  std::optional<std::vector<sources::Mount>> mounts_;
  int asked_ = 0;
};

}  // namespace ddpdoctor::values
