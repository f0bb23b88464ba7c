// SPDX-License-Identifier: Apache-2.0
// Archives and compressed files that `report` is given are unpacked into a temporary folder, which
// goes when the object goes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::cli {

/// What an archive may hold. It may come from anybody.
struct UnpackLimits {
  std::size_t files = 20'000;
  std::uint64_t bytes = std::uint64_t{2} << 30U;  // of all archives together
  int folders = 12;                               // one inside the other, in its names
  int filters = 3;                                // compressions, one around the other
  int archives = 3;                               // one inside the other
};

class UnpackedInputs {
 public:
  explicit UnpackedInputs(UnpackLimits limits = {}) : limits_(limits) {}
  ~UnpackedInputs();
  UnpackedInputs(const UnpackedInputs&) = delete;
  UnpackedInputs& operator=(const UnpackedInputs&) = delete;
  UnpackedInputs(UnpackedInputs&&) = delete;
  UnpackedInputs& operator=(UnpackedInputs&&) = delete;

  /// The folder with what the archive holds, at its own names; one file where it is only
  /// compressed. Refuses what is damaged, encrypted or too much with one sentence.
  base::Result<std::string> folder_for(const std::string& archive);

  /// A sentence with the archive's path where it names our folder.
  [[nodiscard]] std::string as_given(std::string sentence) const;

 private:
  base::Result<std::string> new_folder(const std::string& archive);
  [[nodiscard]] int depth_of(const std::string& path) const;

  UnpackLimits limits_;
  std::size_t files_ = 0;
  std::uint64_t bytes_ = 0;
  std::string root_;
  std::vector<std::pair<std::string, std::string>> folders_;  // ours, and the archive it is of
};

/// False where this program was built without libarchive.
bool can_unpack();

}  // namespace ddpdoctor::cli
