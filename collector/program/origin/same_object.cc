// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/same_object.h"

#include <algorithm>
#include <vector>

namespace ddpdoctor::program {
namespace {

constexpr int kMostAliases = 4;  // aliases of aliases

/// The value of a local that is bound once, by a plain assignment of a path that the function does
/// not assign; no node for other variables.
Node aliased(const Definition& variable) {
  const auto& bindings = variable.file->facts->of_scope[variable.scope];
  const Binding* only = nullptr;
  for (const Binding& one : bindings) {
    if (one.target != variable.name || one.kind == BindingKind::kMethod) {
      continue;
    }
    if (only != nullptr || one.kind != BindingKind::kAssign || one.item || one.unpacked) {
      return {};
    }
    only = &one;
  }
  const std::string path =
      only == nullptr || !only->value ? std::string() : dotted_name(only->value);
  const bool steady =
      !path.empty() && std::none_of(bindings.begin(), bindings.end(), [&](const Binding& one) {
        return one.kind != BindingKind::kMethod && !one.item && may_change(one, path);
      });
  return steady ? only->value : Node();
}

ObjectPath found(const Definition& variable, const std::string& attributes, const Files& files,
                 int depth);

/// The path of "guard.lock", as a scope of a file sees it.
ObjectPath of_path(const std::string& dotted, const File& file, std::size_t scope,
                   const Files& files, int depth) {
  const std::size_t dot = std::min(dotted.find('.'), dotted.size());
  const Definition root = files.lookup(file, scope, dotted.substr(0, dot));
  if (root.kind == Definition::Kind::kVariable) {
    return found(root, dotted.substr(dot), files, depth);
  }
  const Definition is = files.resolve(file, scope, dotted);
  return is.kind == Definition::Kind::kVariable ? found(is, {}, files, depth) : ObjectPath{};
}

ObjectPath found(const Definition& variable, const std::string& attributes, const Files& files,
                 int depth) {
  if (const std::size_t owner = Objects::class_of_self(variable); owner != kNone) {
    return {.file = variable.file, .scope = owner, .path = "self" + attributes};
  }
  const bool local = variable.file->scopes()[variable.scope].kind == ScopeKind::kFunction;
  const Node alias = local && depth < kMostAliases ? aliased(variable) : Node();
  return alias ? of_path(dotted_name(alias) + attributes, *variable.file, variable.scope, files,
                         depth + 1)
               : ObjectPath{.file = variable.file,
                            .scope = variable.scope,
                            .path = variable.name + attributes};
}

}  // namespace

ObjectPath path_to(Node expression, const File& file, std::size_t scope, const Files& files) {
  const Node node = without_parentheses(expression);
  const std::string dotted = dotted_name(node);
  ObjectPath out = dotted.empty() ? ObjectPath{} : of_path(dotted, file, scope, files, 0);
  out.made = Objects(files).of(node, file, scope).made;
  return out;
}

SameObject is_same_object(const ObjectPath& a, const ObjectPath& b) {
  const bool one_path =
      a.file != nullptr && a.file == b.file && a.scope == b.scope && a.path == b.path;
  if (one_path || (a.made && a.made == b.made)) {
    return SameObject::kYes;
  }
  return a.made && b.made ? SameObject::kNo : SameObject::kUnknown;
}

}  // namespace ddpdoctor::program
