// SPDX-License-Identifier: Apache-2.0
#include "viewer/file_names.h"

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::viewer {

namespace {

/// The last `parts` components: ("/srv/a/train.py", 2) is "a/train.py".
std::string_view tail(std::string_view path, std::size_t parts) {
  std::size_t at = path.size();
  while (parts > 0 && at != 0 && at != std::string_view::npos) {
    at = path.rfind('/', at - 1);
    --parts;
  }
  return at == std::string_view::npos || at == 0 ? path : path.substr(at + 1);
}

// If more folders are needed, the full path is shown: a name that fills a line does not help.
constexpr std::size_t kMostFolders = 4;

void add_user_files(const std::vector<diagnosis::StackNode>& nodes, std::set<std::string>& paths) {
  for (const diagnosis::StackNode& node : nodes) {
    if (node.frame.language == model::Language::kPython && model::is_user_file(node.frame.file)) {
      paths.insert(node.frame.file);
    }
    add_user_files(node.children, paths);
  }
}

}  // namespace

FileNames::FileNames(const std::set<std::string>& paths) {
  std::set<std::string> open = paths;
  for (std::size_t parts = 1; parts <= kMostFolders && !open.empty(); ++parts) {
    std::map<std::string_view, int> uses;
    for (const std::string& path : open) {
      ++uses[tail(path, parts)];
    }
    std::set<std::string> ambiguous;
    for (const std::string& path : open) {
      const std::string_view name = tail(path, parts);
      if (uses[name] == 1) {
        names_.emplace(path, base::printable(name));
      } else {
        ambiguous.insert(path);
      }
    }
    open = std::move(ambiguous);
  }
  for (const std::string& path : open) {
    names_.emplace(path, base::printable(path));
  }
}

std::string FileNames::shortened(std::string_view path) const {
  const auto known = names_.find(path);
  return known != names_.end() ? known->second : base::printable(base::file_name(path));
}

std::string FileNames::place(std::string_view path, int line) const {
  return line > 0 ? fmt::format("{}:{}", shortened(path), line) : shortened(path);
}

FileNames file_names(const diagnosis::Diagnosis& diagnosis) {
  std::set<std::string> paths;
  for (const detectors::Finding& finding : diagnosis.findings) {
    for (const detectors::Location& location : finding.locations) {
      paths.insert(location.file);
    }
  }
  add_user_files(diagnosis.stack_diff.roots, paths);
  return FileNames(paths);
}

}  // namespace ddpdoctor::viewer
