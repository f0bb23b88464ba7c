// SPDX-License-Identifier: Apache-2.0
// `report -` and `report <(ssh node cat job.ddpd)`: piped input is copied to a file, because
// formats are recognized before they are read.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::cli {

/// Copies of piped input, removed with this object.
class PipedInputs {
 public:
  PipedInputs() = default;
  PipedInputs(const PipedInputs&) = delete;
  PipedInputs& operator=(const PipedInputs&) = delete;
  PipedInputs(PipedInputs&&) = delete;
  PipedInputs& operator=(PipedInputs&&) = delete;
  ~PipedInputs();

  /// The file to read for this path: a copy of at most 1 GiB if it is "-" or an open descriptor
  /// that is not a regular file; otherwise the path itself.
  base::Result<std::string> file_for(const std::string& path);

  /// A file with these bytes; `given` is its name for the user.
  base::Result<std::string> file_with(std::string_view bytes, const std::string& given);

  /// Replaces the names of copies in a sentence by the names that the user gave.
  [[nodiscard]] std::string as_given(std::string sentence) const;

 private:
  base::Result<std::string> new_copy(const std::string& given);

  std::string folder_;
  std::vector<std::pair<std::string, std::string>> copies_;  // the file, and the user's name for it
};

}  // namespace ddpdoctor::cli
