// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/imported_files.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/text.h"
#include "base/word.h"

namespace ddpdoctor::model {
namespace {

using std::string_view;

constexpr int kFoldersAround = 4;  // "project/src/package/engine/train.py"
constexpr std::size_t kMostModules = 200;

string_view folder_of(string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == string_view::npos ? string_view() : path.substr(0, slash);
}

bool is_dotted(string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return base::is_word(c) || c == '.'; });
}

/// The module of an import item: "a.b" of "a.b as c".
string_view module_in(string_view item) {
  item = base::trim(item);
  return item.substr(0, item.find(' '));
}

/// Adds ".b.c" or "a.b.c" for each module that the statement may name: for `from a import b`, both
/// a and a.b.
void add_modules(string_view code, std::vector<std::string>& modules) {
  const auto add = [&modules](std::string name) {
    if (is_dotted(name) && modules.size() < kMostModules) {
      modules.push_back(std::move(name));
    }
  };
  if (code.starts_with("import ")) {
    for (const auto& item : base::split(code.substr(7), ',')) {
      add(std::string(module_in(item)));
    }
    return;
  }
  const std::size_t what = code.find(" import ");
  if (!code.starts_with("from ") || what == string_view::npos) {
    return;
  }
  const std::string from(base::trim(code.substr(5, what - 5)));
  add(from);
  for (const auto& item : base::split(code.substr(what + 8), ',')) {
    string_view name = base::trim(item);
    name = module_in(name.starts_with("(") ? name.substr(1) : name);
    add(from + (from.ends_with('.') ? "" : ".") + std::string(name));
  }
}

std::string path_of(string_view module) {
  std::string path(module);
  std::replace(path.begin(), path.end(), '.', '/');
  return path;
}

void add_candidates(string_view folder, string_view module, std::vector<std::string>& out) {
  const std::string path = std::string(folder) + "/" + path_of(module);
  out.push_back(path + ".py");
  out.push_back(path + "/__init__.py");
}

}  // namespace

std::vector<std::vector<std::string>> import_candidates(string_view file,
                                                        const program::SourceText& lines) {
  std::vector<std::string> modules;
  std::vector<std::vector<std::string>> out;
  if (!file.starts_with('/')) {
    return out;
  }
  for (const auto& [number, text] : lines) {
    add_modules(base::trim(string_view(text).substr(0, text.find('#'))), modules);
  }
  for (const std::string& module : modules) {
    std::vector<std::string> paths;
    string_view folder = folder_of(file);
    const std::size_t dots = std::min(module.find_first_not_of('.'), module.size());
    for (std::size_t up = 1; up < dots; ++up) {
      folder = folder_of(folder);
    }
    // A relative import names exactly one folder.
    for (int around = dots > 0 ? kFoldersAround - 1 : 0;
         around < kFoldersAround && !folder.empty() && dots < module.size(); ++around) {
      add_candidates(folder, string_view(module).substr(dots), paths);
      folder = folder_of(folder);
    }
    if (!paths.empty()) {
      out.push_back(std::move(paths));
    }
  }
  return out;
}

}  // namespace ddpdoctor::model
