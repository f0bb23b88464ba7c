// SPDX-License-Identifier: Apache-2.0
// A folder for one test, removed with its object.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace ddpdoctor::tests {

/// The constructor makes an empty folder, the destructor removes it with everything in it.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  TempDir(TempDir&&) = delete;
  TempDir& operator=(TempDir&&) = delete;
  ~TempDir();

  /// The absolute path of `name` in it.
  [[nodiscard]] std::string path(std::string_view name) const;
  /// Writes a file; returns its path.
  std::string write(std::string_view name, std::string_view text) const;
  /// Names in it, sorted, separated by blanks.
  [[nodiscard]] std::string names() const;

 private:
  std::filesystem::path folder_;
};

std::string read_text(const std::string& path);

}  // namespace ddpdoctor::tests
