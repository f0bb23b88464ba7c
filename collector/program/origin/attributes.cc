// SPDX-License-Identifier: Apache-2.0
// The origin of an attribute: of a module, of a user's class, of a library's class.
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

constexpr int kDeepestClass = 4;

/// A decorator in any form: "tidy", "journal.tidy", "tidy(level=2)".
std::string_view name_of_decorator(Node decorator) {
  const Node callee = decorator.is(NodeKind::kCall) ? decorator.field(Field::kFunction) : decorator;
  return last_of(callee.text());
}

/// `self` of the function that a decorator puts in the place of a method: the only class in which
/// the functions around it decorate methods.
Definition class_of_decorated(const Files& files, const File& file, std::size_t scope) {
  const auto scopes = file.scopes();
  std::vector<std::string_view> around;  // of a decorator with arguments, the last one
  for (std::size_t at = scope; at != kNone; at = scopes[at].outer) {
    if (scopes[at].kind == ScopeKind::kFunction) {
      around.push_back(scopes[at].name);
    }
  }
  Definition out;
  for (const File& from : files.all()) {
    for (const Scope& one : from.scopes()) {
      const bool method = one.kind == ScopeKind::kFunction && one.outer != kNone &&
                          from.scopes()[one.outer].kind == ScopeKind::kClass;
      const bool decorated =
          method && around.size() > 1 &&
          std::any_of(one.decorators.begin(), one.decorators.end(), [&around](Node decorator) {
            return name_of_decorator(decorator) == around.back();
          });
      if (!decorated || (out.file == &from && out.scope == one.outer)) {
        continue;
      }
      if (out.kind != Definition::Kind::kUnknown) {
        return {};
      }
      out = {.kind = Definition::Kind::kClass, .file = &from, .scope = one.outer};
    }
  }
  return out;
}

}  // namespace

Definition Slicer::class_of_value(Node node, const Where& where, int depth) {
  node = without_parentheses(node);
  if (depth > kDeepestClass || !node) {
    return {};
  }
  const std::string dotted = dotted_name(node);
  const auto scopes = where.file->scopes();
  if (dotted == "self" || dotted == "cls") {
    const std::size_t around = class_of(scopes, where.scope);
    return around == kNone
               ? class_of_decorated(files_, *where.file, where.scope)
               : Definition{.kind = Definition::Kind::kClass, .file = where.file, .scope = around};
  }
  if (node.is(NodeKind::kCall)) {
    const Definition made =
        files_.resolve(*where.file, where.scope, dotted_name(node.field(Field::kFunction)));
    const bool of_library = made.kind == Definition::Kind::kLibrary;
    if (made.kind == Definition::Kind::kFunction) {
      return class_returned(made, depth);
    }
    return made.kind == Definition::Kind::kClass || of_library ? made : Definition{};
  }
  const auto of_binding = [&](const Binding& binding, const File& file, std::size_t scope) {
    const bool gives = binding.kind == BindingKind::kAssign ||
                       binding.kind == BindingKind::kNamed || binding.kind == BindingKind::kWith;
    return gives && !binding.unpacked && !binding.item
               ? class_of_value(binding.value, {.file = &file, .scope = scope}, depth + 1)
               : Definition{};
  };
  if (node.is(NodeKind::kName)) {
    const Definition is = files_.lookup(*where.file, where.scope, dotted);
    if (is.kind == Definition::Kind::kLibrary) {
      return is;  // MPI.COMM_WORLD: an object of a library
    }
    if (is.kind != Definition::Kind::kVariable) {
      return {};
    }
    for (const Binding& binding : is.file->facts->of_scope[is.scope]) {
      if (binding.target == is.name) {
        if (Definition found = of_binding(binding, *is.file, is.scope);
            found.kind != Definition::Kind::kUnknown) {
          return found;
        }
      }
    }
    return class_passed(*is.file, is.scope, is.name, depth);
  }
  if (node.is(NodeKind::kAttribute)) {
    if (Definition is = files_.resolve(*where.file, where.scope, dotted);
        is.kind == Definition::Kind::kLibrary) {
      return is;
    }
    const auto [first, last] =
        where.file->facts->attributes.equal_range(node.field(Field::kAttribute).text());
    for (auto one = first; one != last; ++one) {
      if (Definition found = of_binding(one->second.binding, *where.file, one->second.scope);
          found.kind != Definition::Kind::kUnknown) {
        return found;
      }
    }
  }
  return {};
}

namespace {

/// Some class of the user has this attribute or method.
bool is_defined_by_user(const Files& files, std::string_view name) {
  return std::any_of(files.all().begin(), files.all().end(), [name](const File& file) {
    const auto [first, last] = file.facts->attributes.equal_range(name);
    return file.facts->functions.contains(name) || std::any_of(first, last, [](const auto& one) {
             const std::string& target = one.second.binding.target;
             return target.starts_with("self.") || target.find('.') == std::string::npos;
           });
  });
}

}  // namespace

Origin Slicer::attribute(Node node, const Where& where) {
  const Node object = node.field(Field::kObject);
  const std::string_view name = node.field(Field::kAttribute).text();
  const std::string dotted = dotted_name(node);
  const Definition is =
      dotted.empty() ? Definition{} : files_.resolve(*where.file, where.scope, dotted);
  if (is.kind != Definition::Kind::kUnknown) {
    Origin out = defined(is, where, dotted, node);
    // An attribute of an object that a library returns is not one of the library's constants.
    const bool of_instance = is.kind == Definition::Kind::kLibrary &&
                             std::count(is.qualified.begin(), is.qualified.end(), '.') > 0;
    if (!of_instance || out.source != Source::kUniform) {
      return out;
    }
    const std::string owner = is.qualified.substr(0, is.qualified.rfind('.'));
    const SourceRow* row = source_of_member(owner, name);
    return row == nullptr ? out : of_row(*row);
  }
  const Definition owner = class_of_value(object, where);
  bool found = false;
  Origin out =
      owner.kind == Definition::Kind::kUnknown ? Origin{} : member(owner, name, node, where, found);
  if (!found && owner.kind != Definition::Kind::kClass) {
    out = any_member(name, where, found);
  }
  if (!found && owner.kind == Definition::Kind::kClass) {
    out = any_member(name, where, found);  // set from outside: cfg.stop = True
  } else if (found && out.object) {
    out = stronger(std::move(out), put_in_place(name, where));
  } else if (found && owner.kind == Definition::Kind::kClass) {
    out = stronger(std::move(out), set_from_outside(owner, name, where));
  }
  // The program only writes to it: the library that defines it does so, too.
  const SourceRow* const of_library =
      found && owner.kind != Definition::Kind::kClass && !is_defined_by_user(files_, name)
          ? source_of_attribute(name)
          : nullptr;
  if (of_library != nullptr) {
    out = stronger(std::move(out), of_row(*of_library, true));
  }
  if (found) {
    if (out.source != Source::kUniform) {
      add_step(out, *where.file, node);
    }
    return out;
  }
  if (const SourceRow* row = source_of_attribute(name)) {
    return of_row(*row, true);
  }
  if (owner.kind == Definition::Kind::kClass) {
    return unknown(dotted);
  }
  Origin of_object = evaluate(object, where);
  of_object.number = false;
  if (of_object.source == Source::kUnknown && !dotted.empty()) {
    of_object.unknown = dotted;
  }
  return of_object;
}

}  // namespace ddpdoctor::program
