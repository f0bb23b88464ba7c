// SPDX-License-Identifier: Apache-2.0
// Paths in a readable form: the base name, with as many folders as needed to distinguish two files.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::viewer {

/// The short names of the files that one report mentions.
class FileNames {
 public:
  explicit FileNames(const std::set<std::string>& paths);

  /// "train.py", or "a/train.py" if the report contains another file with that name; an unknown
  /// path gives its base name.
  [[nodiscard]] std::string shortened(std::string_view path) const;
  /// "train.py:88"; without the number when the line is unknown.
  [[nodiscard]] std::string place(std::string_view path, int line) const;

 private:
  std::map<std::string, std::string, std::less<>> names_;
};

/// User files that findings and stacks of this diagnosis name.
FileNames file_names(const diagnosis::Diagnosis& diagnosis);

}  // namespace ddpdoctor::viewer
