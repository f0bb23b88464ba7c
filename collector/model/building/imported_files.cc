// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/imported_files.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/word.h"
#include "collector/program/origin/definitions.h"

namespace ddpdoctor::model {
namespace {

using program::Field;
using program::Node;
using program::NodeKind;
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

/// "a.b" of `a.b` and of `a.b as c`.
std::string name_in(Node item) {
  return std::string((item.is(NodeKind::kAliasedImport) ? item.first_child() : item).text());
}

/// The text of a string without parts that are computed; empty for other expressions.
std::string literal(Node node) {
  std::string out;
  for (const Node part : node.is(NodeKind::kString) ? node.all_children() : std::vector<Node>()) {
    if (part.is(NodeKind::kInterpolation)) {
      return {};
    }
    out += part.is(NodeKind::kStringContent) ? part.text() : std::string_view();
  }
  return out;
}

/// The modules that a file may import, as written: ".b.c", "a.b.c"; for `from a import b`, both a
/// and a.b.
std::vector<std::string> modules_of(const program::SourceText& lines) {
  std::vector<std::string> out;
  const auto add = [&out](std::string name) {
    if (is_dotted(name) && out.size() < kMostModules) {
      out.push_back(std::move(name));
    }
  };
  const program::FileFacts& facts = program::facts_of(lines);
  for (const program::Statement& statement : facts.index->statements()) {
    const Node node = statement.node;
    const auto parts = node.all_children();
    if (std::any_of(parts.begin(), parts.end(),
                    [](Node part) { return part.is(NodeKind::kError); })) {
      continue;
    }
    if (node.is(NodeKind::kImport)) {
      for (const Node item : node.children()) {
        add(name_in(item));
      }
    } else if (node.is(NodeKind::kImportFrom)) {
      const Node module = node.field(Field::kModuleName);
      const std::string from(module.text());
      bool is_named = false;
      for (const Node item : node.fields(Field::kName)) {
        if (!is_named) {
          add(from);
        }
        is_named = true;
        add(from + (from.ends_with('.') ? "" : ".") + name_in(item));
      }
      if (!is_named && node.children().size() > 1) {  // `from a import *`
        add(from);
      }
    }
  }
  // `importlib.import_module("plugins.curves")`.
  const auto [first, last] = facts.calls.equal_range("import_module");
  for (auto one = first; one != last; ++one) {
    add(literal(one->second.call.field(Field::kArguments).first_child()));
  }
  return out;
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
  std::vector<std::vector<std::string>> out;
  if (!file.starts_with('/')) {
    return out;
  }
  for (const std::string& module : modules_of(lines)) {
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
