// SPDX-License-Identifier: Apache-2.0
// The classes of which a value can be an object: through a factory function, a conditional, or a
// table of classes.
#include <algorithm>
#include <utility>

#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

constexpr int kDeepestMade = 8;
constexpr std::size_t kMostClasses = 6;

bool is_same(const Definition& a, const Definition& b) {
  return a.kind == b.kind && a.file == b.file && a.scope == b.scope && a.qualified == b.qualified;
}

void add_all(std::vector<Definition> from, std::vector<Definition>& out) {
  for (Definition& one : from) {
    const bool known = std::any_of(out.begin(), out.end(),
                                   [&one](const Definition& other) { return is_same(one, other); });
    if (!known && out.size() < kMostClasses) {
      out.push_back(std::move(one));
    }
  }
}

/// The values of the `return`s of a function, with their places.
std::vector<std::pair<Node, Where>> returned_by(const Definition& function) {
  std::vector<std::pair<Node, Where>> out;
  const SourceIndex& index = *function.file->facts->index;
  const Scope& scope = function.file->scopes()[function.scope];
  for (const std::size_t at : index.statements_of(scope)) {
    const Node statement = index.statements()[at].node;
    if (statement.is(NodeKind::kReturn)) {
      out.emplace_back(statement.first_child(),
                       Where{.file = function.file, .scope = function.scope, .statement = at});
    }
  }
  return out;
}

}  // namespace

/// The only class of the user of which a function returns objects; unknown if it returns anything
/// else, too.
Definition Slicer::class_returned(const Definition& function, int depth) {
  if (function.file->scopes()[function.scope].is_generator || depth >= kDeepestMade) {
    return {};
  }
  Definition out;
  for (const auto& [value, there] : returned_by(function)) {
    Definition made = class_of_value(value, there, depth + 1);
    if (made.kind != Definition::Kind::kClass ||
        (out.kind != Definition::Kind::kUnknown && !is_same(made, out))) {
      return {};
    }
    out = std::move(made);
  }
  return out;
}

std::vector<Definition> Slicer::classes_of_value(Node node, const Where& where, int depth) {
  node = without_parentheses(node);
  const bool may_be_object = node.is(NodeKind::kName) || node.is(NodeKind::kAttribute) ||
                             node.is(NodeKind::kCall) || node.is(NodeKind::kConditional);
  if (!may_be_object || depth > kDeepestMade) {
    return {};
  }
  if (node.is(NodeKind::kConditional)) {
    const auto parts = node.children();
    std::vector<Definition> out = classes_of_value(parts.front(), where, depth + 1);
    add_all(classes_of_value(parts.back(), where, depth + 1), out);
    return out;
  }
  if (Definition made = class_of_value(node, where); made.kind != Definition::Kind::kUnknown) {
    return made.kind == Definition::Kind::kClass ? std::vector{std::move(made)}
                                                 : std::vector<Definition>{};
  }
  if (node.is(NodeKind::kCall)) {
    return classes_made(node, where, depth);
  }
  std::vector<Definition> out;
  std::size_t followed = 0;
  const Key key{where.file, where.scope, "class of " + std::string(node.text())};
  if (!open_.insert(key).second) {
    return out;
  }
  const auto add = [&](const Binding& binding, const File& file, std::size_t scope) {
    if (binding.kind == BindingKind::kAssign && !binding.unpacked && !binding.item &&
        ++followed <= kMostClasses) {
      add_all(classes_of_value(binding.value, {.file = &file, .scope = scope}, depth + 1), out);
    }
  };
  if (node.is(NodeKind::kName)) {
    const Definition is = files_.lookup(*where.file, where.scope, node.text());
    if (is.kind == Definition::Kind::kVariable) {
      for (const Binding& binding : is.file->facts->of_scope[is.scope]) {
        if (binding.target == is.name) {
          add(binding, *is.file, is.scope);
        }
      }
    }
  } else {
    const auto [first, last] =
        where.file->facts->attributes.equal_range(node.field(Field::kAttribute).text());
    for (auto one = first; one != last; ++one) {
      add(one->second.binding, *where.file, one->second.scope);
    }
  }
  leave(key);
  return out;
}

/// The classes of a call's result.
std::vector<Definition> Slicer::classes_made(Node call, const Where& where, int depth) {
  const Node callee = call.field(Field::kFunction);
  const std::string dotted = dotted_name(callee);
  const Definition is =
      dotted.empty() ? Definition{} : files_.resolve(*where.file, where.scope, dotted);
  if (is.kind != Definition::Kind::kFunction) {
    return classes_named(callee, where, depth + 1);
  }
  std::vector<Definition> out;
  for (const auto& [value, there] : returned_by(is)) {
    add_all(classes_of_value(value, there, depth + 1), out);
  }
  return out;
}

/// The classes that an expression itself can be: `Pooled if pooled else Own`, `KINDS[kind]`.
std::vector<Definition> Slicer::classes_named(Node node, const Where& where, int depth) {
  node = without_parentheses(node);
  std::vector<Definition> out;
  if (depth > kDeepestMade) {
    return out;
  }
  if (node.is(NodeKind::kConditional)) {
    const auto parts = node.children();
    out = classes_named(parts.front(), where, depth + 1);
    add_all(classes_named(parts.back(), where, depth + 1), out);
    return out;
  }
  if (node.is(NodeKind::kSubscript)) {
    return classes_named(node.field(Field::kValue), where, depth + 1);
  }
  if (node.is(NodeKind::kDictionary)) {
    for (const Node pair : node.children()) {
      add_all(classes_named(pair.field(Field::kValue), where, depth + 1), out);
    }
    return out;
  }
  const std::string dotted = dotted_name(node);
  const Definition is =
      dotted.empty() ? Definition{} : files_.resolve(*where.file, where.scope, dotted);
  if (is.kind == Definition::Kind::kClass) {
    return {is};
  }
  if (is.kind == Definition::Kind::kVariable) {
    for (const Binding& binding : is.file->facts->of_scope[is.scope]) {
      if (binding.target == is.name && binding.kind == BindingKind::kAssign) {
        add_all(classes_named(binding.value, {.file = is.file, .scope = is.scope}, depth + 1), out);
      }
    }
  }
  return out;
}

}  // namespace ddpdoctor::program
