// SPDX-License-Identifier: Apache-2.0
#include "collector/values/effects.h"

#include <algorithm>

#include "collector/program/syntax/bindings.h"

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

Effects::Effects(const program::SourceIndex& index) {
  for (const program::Scope& scope : index.scopes()) {
    if (scope.kind != program::ScopeKind::kFunction || scope.name == "__init__") {
      continue;
    }
    Function function{.name = scope.name, .calls = {}, .writes = {}};
    add_called(scope.body, function.calls);
    std::set<std::string> outer;  // names that are not the function's own
    for (const program::Node statement : scope.body.children()) {
      if (statement.is(NodeKind::kGlobal) || statement.is(NodeKind::kNonlocal)) {
        for (const Node name : statement.children()) {
          outer.emplace(name.text());
        }
      }
    }
    for (const program::Binding& binding : program::bindings_of(index, scope)) {
      const std::size_t dot = binding.target.rfind('.');
      if (binding.kind == program::BindingKind::kMethod ||
          (dot == std::string::npos && !outer.contains(binding.target))) {
        continue;
      }
      function.writes.emplace(binding.target.substr(dot + 1), binding.line);
    }
    functions_.push_back(std::move(function));
  }
}

std::optional<Writer> Effects::writer(std::string_view name,
                                      const std::set<std::string>& called) const {
  if (std::none_of(functions_.begin(), functions_.end(), [name](const Function& one) {
        return one.writes.find(name) != one.writes.end();
      })) {
    return std::nullopt;
  }
  std::set<std::string> reached = called;
  for (int hop = 0; hop < kMostHops; ++hop) {
    std::set<std::string> further = reached;
    for (const Function& one : functions_) {
      if (!reached.contains(one.name)) {
        continue;
      }
      if (const auto found = one.writes.find(name); found != one.writes.end()) {
        return Writer{.function = one.name, .line = found->second};
      }
      further.insert(one.calls.begin(), one.calls.end());
    }
    if (further.size() == reached.size()) {
      break;
    }
    reached = std::move(further);
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::values
