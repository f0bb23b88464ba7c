// SPDX-License-Identifier: Apache-2.0
// torchrun's error files are four folders below its --log-dir, which may be inside a run's folder;
// folders that are too deep are reported.
#include "cli/input_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/monitor/spool_job.h"

namespace ddpdoctor::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 100'000;  // entries of one folder
constexpr std::size_t kMostTooDeep = 1000;
constexpr int kDeepest = 8;  // depth of nested folders

bool is_hidden(const std::string& path) {
  return base::file_name(path).starts_with('.');
}

bool ends_with_any(std::string_view path, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [path](std::string_view ending) { return path.ends_with(ending); });
}

/// Records spools and folders that are too deep; false: do not enter the folder.
bool enter(const std::string& path, int depth, FolderContents& out) {
  if (monitor::holds_rings(path)) {
    out.spools.push_back(path);
    return false;
  }
  if (is_hidden(path) || depth <= kDeepest) {
    return !is_hidden(path);
  }
  std::error_code unreadable;
  if (!fs::is_empty(path, unreadable) && !unreadable && out.too_deep.size() < kMostTooDeep) {
    out.too_deep.push_back(path);
  }
  return false;
}

}  // namespace

base::Result<FolderContents> contents_of(const std::string& folder) {
  FolderContents out;
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(
      folder, fs::directory_options::skip_permission_denied, error);
  std::size_t entries = 0;
  for (; !error && entry != fs::end(entry) && entries < kMostEntries; ++entries) {
    const std::string path = entry->path().string();
    std::error_code unreadable;
    if (entry->is_directory(unreadable)) {
      if (!enter(path, entry.depth() + 1, out)) {
        entry.disable_recursion_pending();
      }
    } else if (entry->is_regular_file(unreadable) && !is_hidden(path) &&
               !is_named_like_source(path)) {
      out.files.push_back(path);
    }
    entry.increment(error);
  }
  if (error) {
    return base::failure(fmt::format("{} cannot be read: {}", folder, error.message()));
  }
  out.cut = entries == kMostEntries;
  std::sort(out.files.begin(), out.files.end());
  std::sort(out.too_deep.begin(), out.too_deep.end());
  return out;
}

bool is_named_like_program(std::string_view path) {
  constexpr std::array<std::string_view, 14> kEndings = {".py",  ".pyi", ".ipynb", ".sh", ".slurm",
                                                         ".c",   ".cc",  ".cpp",   ".cu", ".h",
                                                         ".hpp", ".cuh", ".rs",    ".js"};
  return ends_with_any(path, kEndings);
}

bool is_named_like_source(std::string_view path) {
  constexpr std::array<std::string_view, 4> kPages = {".md", ".rst", ".html", ".htm"};
  return is_named_like_program(path) || ends_with_any(path, kPages);
}

}  // namespace ddpdoctor::cli
