// SPDX-License-Identifier: Apache-2.0
// The source files that frames name, as their process sees them, parsed once for all processes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include <sys/types.h>

#include "collector/program/source_text.h"
#include "collector/program/syntax/source_index.h"
#include "collector/values/effects.h"
#include "collector/values/expression.h"

namespace ddpdoctor::values {

/// Files by their identity on disk; nothing of a file that is no regular file or too large.
class SourceFiles {
 public:
  /// The parsed file behind a path as process `pid` sees it; null when there is none. A file that
  /// was changed after `began` (seconds since the epoch; 0 = unknown) is not what runs.
  const program::SourceIndex* index(pid_t pid, const std::string& path);
  /// What calling functions of the user's files that were read for this process may assign; grows
  /// as more of them are read.
  const Effects& effects(pid_t pid);
  /// What a function of it returns (from_syntax.h), kept.
  const Expression* body(pid_t pid, const std::string& path, int first_line,
                         std::string_view qualname);

 private:
  using Identity = std::tuple<dev_t, ino_t, std::int64_t>;  // device, inode, time of change in ns
  struct File {
    program::SourceText text;
    const program::SourceIndex* index = nullptr;
    std::optional<FileEffects> effects;
    std::map<std::pair<int, std::string>, std::optional<Expression>> bodies;
  };

  File* file(pid_t pid, const std::string& path);

  std::map<Identity, std::unique_ptr<File>> files_;
  std::map<std::pair<pid_t, std::string>, File*> known_;
  std::map<pid_t, Effects> effects_;
};

}  // namespace ddpdoctor::values
