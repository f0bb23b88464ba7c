// SPDX-License-Identifier: Apache-2.0
#include "collector/values/effects.h"

#include <algorithm>
#include <array>

namespace ddpdoctor::values {

namespace {

using program::Field;
using program::Node;
using program::NodeKind;

constexpr int kMostHops = 4;

}  // namespace

void add_called(Node node, std::set<std::string>& names) {
  if (node.is(NodeKind::kCall)) {
    const Node callee = node.field(Field::kFunction);
    const Node last = callee.is(NodeKind::kAttribute) ? callee.field(Field::kAttribute) : callee;
    if (last.is(NodeKind::kName)) {
      names.emplace(last.text());
    }
  }
  for (const Node child : node.children()) {
    add_called(child, names);
  }
}

bool changes_something(const program::Binding& binding) {
  constexpr auto kMethods = std::to_array<std::string_view>(
      {"append",  "appendleft", "extend", "extendleft", "insert",     "pop",       "popleft",
       "popitem", "remove",     "clear",  "add",        "discard",    "update",    "setdefault",
       "sort",    "reverse",    "rotate", "put",        "put_nowait", "get_nowait"});
  if (binding.kind != program::BindingKind::kMethod) {
    return true;
  }
  const Node callee = binding.node.field(Field::kFunction);
  return std::ranges::find(kMethods, callee.field(Field::kAttribute).text()) != kMethods.end();
}

FileEffects::FileEffects(const program::SourceIndex& index) {
  for (const program::Scope& scope : index.scopes()) {
    if (scope.kind != program::ScopeKind::kFunction || scope.name == "__init__") {
      continue;
    }
    Function function{.name = scope.name, .calls = {}, .writes = {}};
    add_called(scope.body, function.calls);
    std::set<std::string> outer;  // names that are not local to the function
    for (const program::Node statement : scope.body.children()) {
      if (statement.is(NodeKind::kGlobal) || statement.is(NodeKind::kNonlocal)) {
        for (const Node name : statement.children()) {
          outer.emplace(name.text());
        }
      }
    }
    for (const program::Binding& binding : program::bindings_of(index, scope)) {
      const std::size_t dot = binding.target.rfind('.');
      if (changes_something(binding) &&
          (dot != std::string::npos || outer.contains(binding.target))) {
        function.writes.emplace(binding.target.substr(dot + 1), binding.line);
        written.insert(binding.target.substr(dot + 1));
      }
    }
    functions.push_back(std::move(function));
  }
}

void Effects::add(const FileEffects& file) {
  if (std::ranges::find(files_, &file) == files_.end()) {
    files_.push_back(&file);
  }
}

std::optional<Writer> Effects::writer(std::string_view name,
                                      const std::set<std::string>& called) const {
  if (std::ranges::none_of(files_, [name](const auto* file) {
        return file->written.find(name) != file->written.end();
      })) {
    return std::nullopt;
  }
  std::set<std::string> reached = called;
  for (int hop = 0; hop < kMostHops; ++hop) {
    std::set<std::string> further = reached;
    for (const FileEffects* file : files_) {
      for (const FileEffects::Function& one : file->functions) {
        if (!reached.contains(one.name)) {
          continue;
        }
        if (const auto found = one.writes.find(name); found != one.writes.end()) {
          return Writer{.function = one.name, .line = found->second};
        }
        further.insert(one.calls.begin(), one.calls.end());
      }
    }
    if (further.size() == reached.size()) {
      break;
    }
    reached = std::move(further);
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::values
