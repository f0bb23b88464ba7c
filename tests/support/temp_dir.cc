// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temp_dir.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include <gtest/gtest.h>

namespace ddpdoctor::tests {

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "ddpdoctor-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    ADD_FAILURE() << "no temporary folder " << pattern;
  }
  folder_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string TempDir::path(std::string_view name) const {
  return (folder_ / name).string();
}

std::string TempDir::write(std::string_view name, std::string_view text) const {
  std::filesystem::create_directories((folder_ / name).parent_path());
  std::ofstream(folder_ / name, std::ios::binary) << text;
  return path(name);
}

std::string TempDir::names() const {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    found.insert(entry.path().filename().string());
  }
  std::string out;
  for (const std::string& name : found) {
    out += (out.empty() ? "" : " ") + name;
  }
  return out;
}

std::string read_text(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace ddpdoctor::tests
