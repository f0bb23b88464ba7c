// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/objects.h"

#include <algorithm>
#include <utility>

#include "collector/program/origin/callees.h"
#include "collector/program/origin/passing.h"
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

constexpr int kDeepestObject = 8;
constexpr int kMostBindings = 24;

using Kind = Object::Kind;

/// What a literal or a comprehension constructs; empty for other expressions.
std::string_view literal_class(Node node) {
  switch (node.kind()) {
    case NodeKind::kDictionary:
    case NodeKind::kDictionaryComprehension:
      return "dict";
    case NodeKind::kList:
    case NodeKind::kListComprehension:
      return "list";
    case NodeKind::kSet:
    case NodeKind::kSetComprehension:
      return "set";
    case NodeKind::kTuple:
    case NodeKind::kExpressionList:
      return "tuple";
    case NodeKind::kString:
    case NodeKind::kConcatenatedString:
      return "str";
    case NodeKind::kInteger:
    case NodeKind::kFloat:
    case NodeKind::kTrue:
    case NodeKind::kFalse:
      return "int";
    default:
      return {};
  }
}

/// The expressions of the items of a literal or a comprehension.
std::vector<Node> items_in(Node node) {
  std::vector<Node> out =
      node.is(NodeKind::kListComprehension) || node.is(NodeKind::kSetComprehension) ||
              node.is(NodeKind::kDictionaryComprehension) || node.is(NodeKind::kGenerator)
          ? std::vector<Node>{node.field(Field::kBody)}
          : node.children();
  for (Node& item : out) {
    item = item.is(NodeKind::kPair) ? item.field(Field::kValue) : item;
  }
  return out;
}

/// The annotation of a parameter.
Node annotation_of(const Scope& function, std::size_t index) {
  for (const Node child : function.node.field(Field::kParameters).children()) {
    const Node name = child.field(Field::kName) ? child.field(Field::kName) : child.first_child();
    if (child.field(Field::kType) && name.text() == function.parameters[index].name) {
      return child.field(Field::kType);
    }
  }
  return {};
}

/// Adds an object, or all that it may be, unless one of its class is there.
void add_object(Object object, std::vector<Object>& out) {
  if (object.kind == Kind::kSeveral) {
    for (Object& one : object.either) {
      add_object(std::move(one), out);
    }
    return;
  }
  const bool known = object.kind == Kind::kLibrary || object.kind == Kind::kUser;
  const auto alike = [&object](const Object& other) { return is_same_class(object, other); };
  if (known && std::none_of(out.begin(), out.end(), alike)) {
    out.push_back(std::move(object));
  }
}

/// Two objects of different classes, or of which one is unknown.
Object one_of(Object a, Object b) {
  Object out{.kind = Kind::kSeveral};
  add_object(std::move(a), out.either);
  add_object(std::move(b), out.either);
  return out.either.empty() ? Object{} : out;
}

}  // namespace

Object of_library(std::string qualified, Node made) {
  const ClassRow* row = class_made_by(qualified);
  const bool single = row != nullptr && row->parts == 0;
  return {.kind = Kind::kLibrary,
          .qualified = std::move(qualified),
          .owner = single ? row->owner : std::string_view(),
          .made = made};
}

Object of_builtin(std::string_view name, Node made) {
  return of_library("builtins." + std::string(name), made);
}

bool is_same_class(const Object& a, const Object& b) {
  if (a.kind != b.kind || a.owner != b.owner) {
    return false;
  }
  return a.kind == Kind::kUser ? a.user.file == b.user.file && a.user.scope == b.user.scope
                               : !a.owner.empty() || a.qualified == b.qualified;
}

Object joined(Object a, Object b) {
  if (a.kind == Kind::kAbsent || b.kind == Kind::kAbsent) {
    return a.kind == Kind::kAbsent ? b : a;
  }
  const bool several = a.kind == Kind::kSeveral || b.kind == Kind::kSeveral;
  if (several || a.kind == Kind::kUnknown || b.kind == Kind::kUnknown || !is_same_class(a, b)) {
    return one_of(std::move(a), std::move(b));
  }
  a.made = a.made == b.made ? a.made : Node();
  return a;
}

Object Objects::of(Node expression, const File& file, std::size_t scope) const {
  Object out = find(expression, {.file = &file, .scope = scope});
  return out.kind == Kind::kAbsent || out.kind == Kind::kSeveral ? Object{} : out;
}

std::vector<Object> Objects::each_of(Node expression, const File& file, std::size_t scope) const {
  std::vector<Object> out;
  add_object(find(expression, {.file = &file, .scope = scope}), out);
  return out;
}

Object Objects::in_library(std::string_view qualified) {
  const std::size_t dot = qualified.rfind('.');
  return dot == qualified.npos ? Object{} : of_library(std::string(qualified.substr(0, dot)), {});
}

Object Objects::find(Node node, Place at) const {
  node = without_parentheses(node);
  if (!node || ++at.depth > kDeepestObject) {
    return {};
  }
  if (const std::string_view literal = literal_class(node); !literal.empty()) {
    if (!at.item) {
      return of_builtin(literal, node);
    }
    Object out = no_object();
    at.item = false;
    for (const Node item : items_in(node)) {
      out = joined(std::move(out), find(item, at));
    }
    return out;
  }
  switch (node.kind()) {
    case NodeKind::kNone:
      return no_object();
    case NodeKind::kNamed:
      return find(node.field(Field::kValue), at);
    case NodeKind::kConditional: {
      const auto parts = node.children();
      return parts.size() == 3 ? joined(find(parts[0], at), find(parts[2], at)) : Object{};
    }
    case NodeKind::kSubscript:
      return at.item ? Object{}
                     : find(node.field(Field::kValue),
                            {.file = at.file, .scope = at.scope, .depth = at.depth, .item = true});
    case NodeKind::kCall:
      return called(node, at);
    case NodeKind::kAttribute:
      return attribute(node, at);
    case NodeKind::kName: {
      if (const Node part = bound_in_comprehension(node)) {
        const bool whole = part.field(Field::kLeft).is(NodeKind::kName) && !at.item;
        at.item = true;
        return whole ? find(part.field(Field::kRight), at) : Object{};
      }
      const Definition is = files_.lookup(*at.file, at.scope, node.text());
      if (is.kind == Definition::Kind::kLibrary && !at.item) {
        return of_library(is.qualified, {});
      }
      return is.kind == Definition::Kind::kVariable ? variable(is, at) : Object{};
    }
    default:
      return {};
  }
}

Object Objects::called(Node call, Place at) const {
  const Node callee = without_parentheses(call.field(Field::kFunction));
  const std::string_view method = callee.field(Field::kAttribute).text();
  if (at.item) {  // `for q in self.queues.values()`
    const bool values = callee.is(NodeKind::kAttribute) && method == "values" &&
                        !call.field(Field::kArguments).first_child();
    return values ? find(callee.field(Field::kObject), at) : Object{};
  }
  const std::string dotted = dotted_name(callee);
  const Definition is = dotted.empty() ? Definition{} : files_.resolve(*at.file, at.scope, dotted);
  switch (is.kind) {
    case Definition::Kind::kLibrary:
      return of_library(is.qualified, call);
    case Definition::Kind::kClass:
      return {.kind = Kind::kUser, .user = is, .made = call};
    case Definition::Kind::kFunction:
      return returned(*is.file, is.scope, at);
    case Definition::Kind::kModule:
    case Definition::Kind::kVariable:
    case Definition::Kind::kUnknown:
      break;
  }
  if (callee.is(NodeKind::kName)) {
    return is.kind == Definition::Kind::kUnknown ? of_builtin(dotted, call) : Object{};
  }
  std::vector<Definition> classes;
  add_classes(callee, at, classes);
  if (!classes.empty()) {
    Object out = no_object();
    for (const Definition& one : classes) {
      out = joined(std::move(out), {.kind = Kind::kUser, .user = one, .made = call});
    }
    return out;
  }
  const Object owner =
      callee.is(NodeKind::kAttribute) ? find(callee.field(Field::kObject), at) : Object{};
  if (owner.kind == Kind::kLibrary) {
    return of_library(owner.qualified + "." + std::string(method), call);
  }
  const auto found =
      owner.kind == Kind::kUser ? methods_of(owner.user, method, files_) : std::vector<Callee>{};
  return found.empty() ? Object{} : returned(*found.front().file, found.front().scope, at);
}

void Objects::add_classes(Node node, Place at, std::vector<Definition>& out) const {
  node = without_parentheses(node);
  if (!node || ++at.depth > kDeepestObject) {
    return;
  }
  if (node.is(NodeKind::kConditional)) {
    for (const std::size_t i : {0U, 2U}) {
      const auto parts = node.children();
      add_classes(parts.size() == 3 ? parts[i] : Node(), at, out);
    }
  } else if (node.is(NodeKind::kSubscript) && !at.item) {
    at.item = true;
    add_classes(node.field(Field::kValue), at, out);
  } else if (at.item && !literal_class(node).empty()) {
    at.item = false;
    for (const Node item : items_in(node)) {
      add_classes(item, at, out);
    }
  } else if (const std::string dotted = dotted_name(node); !dotted.empty()) {
    const Definition is = files_.resolve(*at.file, at.scope, dotted);
    if (is.kind == Definition::Kind::kClass && !at.item) {
      out.push_back(is);
    }
    if (is.kind != Definition::Kind::kVariable) {
      return;
    }
    at.file = is.file;
    at.scope = is.scope;
    for (const Binding& binding : is.file->facts->of_scope[is.scope]) {
      if (binding.target == is.name && binding.kind == BindingKind::kAssign && !binding.unpacked) {
        add_classes(binding.value, at, out);
      }
    }
  }
}

Object Objects::returned(const File& file, std::size_t scope, Place at) const {
  const Scope& function = file.scopes()[scope];
  if (function.is_generator || function.is_async) {
    return {};
  }
  Object out = no_object();
  const SourceIndex& index = *file.facts->index;
  for (const std::size_t one : index.statements_of(function)) {
    const Node statement = index.statements()[one].node;
    if (const Node value = statement.first_child(); statement.is(NodeKind::kReturn) && value) {
      out =
          joined(std::move(out),
                 find(value, {.file = &file, .scope = scope, .depth = at.depth, .item = at.item}));
    }
  }
  return out;
}

Object Objects::variable(const Definition& is, Place at) const {
  at.file = is.file;
  const auto scopes = is.file->scopes();
  if (const std::size_t owner = class_of_self(is); owner != kNone) {
    return {.kind = Kind::kUser,
            .user = {.kind = Definition::Kind::kClass, .file = is.file, .scope = owner}};
  }
  Object out = no_object();
  int followed = 0;
  const auto add = [&](std::size_t scope) {
    for (const Binding& binding : is.file->facts->of_scope[scope]) {
      if (binding.target == is.name && ++followed <= kMostBindings) {
        at.scope = scope;
        out = joined(std::move(out), bound(binding, at));
      }
    }
  };
  add(is.scope);
  if (is.scope == 0) {
    const auto [first, last] = is.file->facts->globals.equal_range(is.name);
    std::for_each(first, last, [&](const auto& one) { add(one.second); });
  }
  const std::size_t index = number_of(scopes[is.scope], is.name);
  return index == kNoParameter ? out : joined(std::move(out), parameter(is, index, at));
}

Object Objects::parameter(const Definition& is, std::size_t index, Place at) const {
  const Scope& function = is.file->scopes()[is.scope];
  const Parameter& itself = function.parameters[index];
  if (itself.kind == Parameter::Kind::kStar || itself.kind == Parameter::Kind::kDoubleStar) {
    return {};
  }
  const std::size_t around = function.outer == kNone ? 0 : function.outer;
  const Object typed =
      annotated(annotation_of(function, index),
                {.file = is.file, .scope = around, .depth = at.depth, .item = at.item});
  Object out = no_object();
  for (const Passed& one : all_passed(files_, {*is.file, is.scope, index})) {
    out = joined(
        std::move(out),
        find(one.node, {.file = one.file, .scope = one.scope, .depth = at.depth, .item = at.item}));
  }
  if (typed.kind != Kind::kUser && typed.owner.empty()) {
    return out.kind == Kind::kAbsent ? Object{} : out;
  }
  return is_same_class(typed, out) || (out.kind == Kind::kUser && typed.kind == Kind::kUser)
             ? out  // perhaps of a derived class
             : typed;
}

bool is_decorated(const Scope& scope, std::string_view name) {
  return std::any_of(scope.decorators.begin(), scope.decorators.end(),
                     [name](Node one) { return last_of(one.text()) == name; });
}

std::size_t Objects::class_of_self(const Definition& variable) {
  if (variable.kind != Definition::Kind::kVariable) {
    return kNone;
  }
  const Scope& function = variable.file->scopes()[variable.scope];
  const bool first = function.kind == ScopeKind::kFunction &&
                     is_method(*variable.file, variable.scope) && !function.parameters.empty() &&
                     function.parameters.front().name == variable.name &&
                     !is_decorated(function, "staticmethod");
  return first ? function.outer : kNone;
}

}  // namespace ddpdoctor::program
