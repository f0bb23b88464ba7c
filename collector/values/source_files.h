// SPDX-License-Identifier: Apache-2.0
// The source files named by frames, as their process sees them, parsed once for all processes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <sys/types.h>

#include "collector/program/known_texts.h"
#include "collector/program/source_text.h"
#include "collector/program/syntax/source_index.h"
#include "collector/values/effects.h"
#include "collector/values/expression.h"

namespace ddpdoctor::values {

/// Files by their identity on disk. Files that are not regular or are too large give nothing.
class SourceFiles {
 public:
  /// `known`: what an earlier reader of this job has parsed.
  explicit SourceFiles(program::KnownTexts known = {}) : parsed_(std::move(known)) {}

  /// The parsed file at a path as process `pid` sees it; null if there is none, or if it was
  /// changed after `began` (seconds since the epoch; 0 = unknown) and so is not the code that runs.
  const program::SourceIndex* index(pid_t pid, const std::string& path);
  /// The files read so far, by the path that a process names; of two with one path, the first.
  [[nodiscard]] program::KnownTexts texts() const;
  /// What calls of the user's functions may assign, for the files of this process read so far.
  const Effects& effects(pid_t pid);
  /// What a function of the file returns (from_syntax.h); cached.
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

  program::KnownTexts parsed_;
  std::map<Identity, std::unique_ptr<File>> files_;
  std::map<std::pair<pid_t, std::string>, File*> known_;
  std::map<pid_t, Effects> effects_;
};

}  // namespace ddpdoctor::values
