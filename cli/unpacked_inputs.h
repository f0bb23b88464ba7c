// SPDX-License-Identifier: Apache-2.0
// Unpacks archives and compressed files given to `report` into a temporary folder, which is removed
// with the object.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::cli {

/// Limits for an archive, which is untrusted.
struct UnpackLimits {
  std::size_t files = 20'000;
  std::uint64_t bytes = std::uint64_t{2} << 30U;  // all archives together
  int folders = 12;                               // depth of folders in its names
  int filters = 3;                                // nested compressions
  int archives = 3;                               // nested archives
};

class UnpackedInputs {
 public:
  explicit UnpackedInputs(UnpackLimits limits = {}) : limits_(limits) {}
  ~UnpackedInputs();
  UnpackedInputs(const UnpackedInputs&) = delete;
  UnpackedInputs& operator=(const UnpackedInputs&) = delete;
  UnpackedInputs(UnpackedInputs&&) = delete;
  UnpackedInputs& operator=(UnpackedInputs&&) = delete;

  /// The folder with the content of the archive under its own names; a single file if it is only
  /// compressed. Refuses damaged, encrypted or too large archives with one sentence.
  base::Result<std::string> folder_for(const std::string& archive);

  /// Replaces our folder in a sentence by the archive's path.
  [[nodiscard]] std::string as_given(std::string sentence) const;

 private:
  base::Result<std::string> new_folder(const std::string& archive);
  [[nodiscard]] int depth_of(const std::string& path) const;

  UnpackLimits limits_;
  std::size_t files_ = 0;
  std::uint64_t bytes_ = 0;
  std::string root_;
  std::vector<std::pair<std::string, std::string>> folders_;  // our folder, and its archive
};

/// False if this program was built without libarchive.
bool can_unpack();

}  // namespace ddpdoctor::cli
