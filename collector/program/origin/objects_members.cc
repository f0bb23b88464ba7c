// SPDX-License-Identifier: Apache-2.0
// Objects in attributes, bindings and annotations.
#include <algorithm>
#include <utility>

#include "collector/program/origin/objects.h"

namespace ddpdoctor::program {
namespace {

constexpr int kMostMemberBindings = 24;

using Kind = Object::Kind;

/// Which item of a tuple an unpacked target gets: 1 for b in `a, b = f()`.
std::size_t position_in_list(Node target) {
  const auto all = target.parent().children();
  return static_cast<std::size_t>(std::find(all.begin(), all.end(), target) - all.begin());
}

}  // namespace

Object Objects::attribute(Node node, Place at) const {
  const std::string dotted = dotted_name(node);
  const Definition is = dotted.empty() ? Definition{} : files_.resolve(*at.file, at.scope, dotted);
  if (is.kind == Definition::Kind::kLibrary) {
    return at.item ? Object{} : of_library(is.qualified, {});
  }
  if (is.kind == Definition::Kind::kVariable) {
    return variable(is, at);
  }
  const Object owner =
      find(node.field(Field::kObject), {.file = at.file, .scope = at.scope, .depth = at.depth});
  const std::string_view name = node.field(Field::kAttribute).text();
  if (owner.kind == Kind::kLibrary && !at.item) {
    return of_library(owner.qualified + "." + std::string(name), {});
  }
  return owner.kind == Kind::kUser ? member(owner.user, name, at) : Object{};
}

/// What a class, or its first base that has the attribute, sets under this name.
Object Objects::member(const Definition& owner, std::string_view name, Place at) const {
  for (const Definition& one : files_.bases_of(owner)) {
    if (one.kind != Definition::Kind::kClass) {
      continue;
    }
    at.file = one.file;
    Object out = no_object();
    int followed = 0;
    const auto [first, last] = one.file->facts->attributes.equal_range(name);
    for (auto bound_in = first; bound_in != last; ++bound_in) {
      const auto& [scope, binding] = bound_in->second;
      const std::size_t dot = binding.target.find('.');
      const Definition through =
          dot == std::string::npos ? Definition{}
                                   : files_.lookup(*one.file, scope, binding.target.substr(0, dot));
      const bool of_self = dot != std::string::npos && dot == binding.target.rfind('.') &&
                           class_of_self(through) == one.scope;
      const bool of_class = dot == std::string::npos && scope == one.scope;
      if ((of_self || of_class) && binding.kind != BindingKind::kDefine) {
        at.scope = scope;
        out = ++followed > kMostMemberBindings ? Object{}
                                               : joined(std::move(out), bound(binding, at));
      }
    }
    const auto [begin, end] = one.file->facts->functions.equal_range(name);
    for (auto function = begin; function != end; ++function) {
      const Scope& scope = one.file->scopes()[function->second];
      const bool property =
          is_decorated(scope, "property") || is_decorated(scope, "cached_property");
      if (scope.outer == one.scope) {
        out =
            property ? joined(std::move(out), returned(*one.file, function->second, at)) : Object{};
      }
    }
    if (out.kind != Kind::kAbsent) {
      return out;
    }
  }
  return {};
}

Object Objects::bound(const Binding& binding, Place at) const {
  switch (binding.kind) {
    case BindingKind::kMethod:
    case BindingKind::kDelete:
    case BindingKind::kImport:
      return no_object();
    case BindingKind::kAssign:
    case BindingKind::kNamed:
    case BindingKind::kWith:
      break;
    case BindingKind::kFor:
      if (at.item || binding.unpacked || binding.item || find(binding.value, at).owner == "dict") {
        return {};  // iterating a dict gives its keys
      }
      at.item = true;
      return find(binding.value, at);
    default:
      return {};
  }
  if (binding.item) {  // todo[0] = 1
    if (!at.item) {
      return no_object();
    }
    at.item = false;
    return find(binding.value, at);
  }
  if (binding.unpacked) {
    const Object whole = at.item ? Object{} : find(binding.value, at);
    const ClassRow* row = whole.kind == Kind::kLibrary ? class_made_by(whole.qualified) : nullptr;
    const std::size_t position = position_in_list(binding.node);
    return row != nullptr && position < static_cast<std::size_t>(row->parts)
               ? Object{.kind = Kind::kLibrary, .qualified = whole.qualified, .owner = row->owner}
               : Object{};
  }
  const Object typed = annotated(binding.node.parent().field(Field::kType), at);
  Object value = binding.value ? find(binding.value, at) : no_object();
  const bool says = typed.kind == Kind::kUser || !typed.owner.empty();
  const bool unclear = value.kind == Kind::kAbsent || value.kind == Kind::kUnknown ||
                       value.kind == Kind::kSeveral ||
                       (value.kind == Kind::kLibrary && value.owner.empty());
  if (says && unclear) {
    return typed;
  }
  return value;
}

Object Objects::annotated(Node type, Place at) const {
  while (type.is(NodeKind::kType)) {
    type = type.first_child();
  }
  if (!type || at.item) {
    return no_object();
  }
  if (const std::string dotted = dotted_name(type); !dotted.empty()) {
    const Definition is = files_.resolve(*at.file, at.scope, dotted);
    if (is.kind == Definition::Kind::kLibrary) {
      return of_library(is.qualified, {});
    }
    if (is.kind == Definition::Kind::kClass) {
      return {.kind = Kind::kUser, .user = is};
    }
    return is.kind == Definition::Kind::kUnknown && type.is(NodeKind::kName) ? of_builtin(dotted)
                                                                             : no_object();
  }
  const std::vector<Node> parts = type.children();
  if (type.is(NodeKind::kBinary) && parts.size() == 2) {  // Queue | None
    const bool second = parts[0].is(NodeKind::kNone);
    const bool optional = second || parts[1].is(NodeKind::kNone);
    return optional ? annotated(parts[second ? 1 : 0], at) : no_object();
  }
  if (parts.size() == 2 && last_of(parts[0].text()) == "Optional") {
    const Node inner =
        parts[1].is(NodeKind::kType) || !parts[1].first_child() ? parts[1] : parts[1].first_child();
    return annotated(dotted_name(parts[1]).empty() ? inner : parts[1], at);
  }
  return parts.empty() || type.is(NodeKind::kString) ? no_object() : annotated(parts[0], at);
}

}  // namespace ddpdoctor::program
