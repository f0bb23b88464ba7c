// SPDX-License-Identifier: Apache-2.0
// `report -` and `report <(ssh node cat job.ddpd)`: what comes through a pipe becomes a file, since
// files are looked at before they are read.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::cli {

/// Copies of what was piped, removed with it.
class PipedInputs {
 public:
  PipedInputs() = default;
  PipedInputs(const PipedInputs&) = delete;
  PipedInputs& operator=(const PipedInputs&) = delete;
  PipedInputs(PipedInputs&&) = delete;
  PipedInputs& operator=(PipedInputs&&) = delete;
  ~PipedInputs();

  /// The file to read for this path: a copy when it is "-" or an open descriptor that is no regular
  /// file, at most 1 GiB; else the path itself.
  base::Result<std::string> file_for(const std::string& path);

  /// A sentence in which copies have the names that the person gave.
  [[nodiscard]] std::string as_given(std::string sentence) const;

 private:
  base::Result<std::string> new_copy(const std::string& given);

  std::string folder_;
  std::vector<std::pair<std::string, std::string>> copies_;  // the file, what the person calls it
};

}  // namespace ddpdoctor::cli
