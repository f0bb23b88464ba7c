// SPDX-License-Identifier: Apache-2.0
// The origin of an object's attribute: every known place that sets it.
#include <algorithm>

#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

bool is_property(const Scope& scope) {
  return std::any_of(scope.decorators.begin(), scope.decorators.end(), [](Node decorator) {
    const std::string_view name = last_of(decorator.text());
    return name == "property" || name == "cached_property";
  });
}

/// Every subclass has its own.
bool is_abstract(const Scope& scope) {
  return std::any_of(scope.decorators.begin(), scope.decorators.end(), [](Node decorator) {
    const std::string_view name = last_of(decorator.text());
    return name == "abstractmethod" || name == "abstractproperty";
  });
}

}  // namespace

/// The values set under this name in a class or on its instances.
Origin Slicer::field_of(const File& file, std::size_t scope, std::string_view name,
                        const Where& where, bool& found) {
  Origin out = of(Source::kUniform);
  const auto [first, last] = file.facts->attributes.equal_range(name);
  for (auto one = first; one != last; ++one) {
    const Binding& binding = one->second.binding;
    const bool of_class = one->second.scope == scope;
    const std::size_t around = class_of(file.scopes(), one->second.scope);
    const bool of_self =
        around == scope &&
        (binding.target.starts_with("self.") || binding.target.starts_with("cls.")) &&
        binding.target.find('.') == binding.target.rfind('.');
    const bool typed_only = binding.kind == BindingKind::kAssign && !binding.value;
    if ((of_class || of_self) && binding.kind != BindingKind::kDefine && !typed_only) {
      found = found || binding.kind != BindingKind::kMethod;
      out = stronger(std::move(out), bound(binding, file, one->second.scope, where));
    }
  }
  const auto [begin, end] = file.facts->functions.equal_range(name);
  for (auto one = begin; one != end; ++one) {
    if (file.scopes()[one->second].outer == scope && !is_abstract(file.scopes()[one->second])) {
      found = true;
      out = stronger(std::move(out), is_property(file.scopes()[one->second])
                                         ? entered(file, one->second, {}, where)
                                         : of_function(file, one->second));
    }
  }
  return stronger(std::move(out), made_with(file, scope, name, where, found));
}

/// A field without a value of its own: the arguments with which the class is constructed.
Origin Slicer::made_with(const File& file, std::size_t scope, std::string_view name,
                         const Where& where, bool& found) {
  Origin out = of(Source::kUniform);
  const Scope& itself = file.scopes()[scope];
  int position = 0;
  for (const Node statement : itself.body.children()) {
    const Node field =
        statement.is(NodeKind::kExpressionStatement) ? statement.first_child() : statement;
    if (!field.is(NodeKind::kAssignment) || !field.field(Field::kType)) {
      continue;
    }
    const bool wanted = field.field(Field::kLeft).text() == name;
    for (const File& from : wanted ? files_.all() : std::vector<File>()) {
      const auto [made, after] = from.facts->calls.equal_range(itself.name);
      for (auto call = made; call != after; ++call) {
        int at = 0;
        for (const Node argument : arguments_of(call->second.call)) {
          const bool keyword = argument.is(NodeKind::kKeywordArgument);
          const bool this_one =
              keyword ? argument.field(Field::kName).text() == name : at == position;
          at += keyword ? 0 : 1;
          if (this_one) {
            found = true;
            const Where there = inside(from, call->second.scope,
                                       from.facts->index->statement_of(call->second.call), where);
            out = stronger(std::move(out), evaluate(argument, there));
          }
        }
      }
    }
    ++position;
  }
  return out;
}

Origin Slicer::member(const Definition& of_class, std::string_view name, Node node,
                      const Where& where, bool& found) {
  Origin out = of(Source::kUniform);
  for (const Definition& one : files_.bases_of(of_class)) {
    if (one.kind == Definition::Kind::kClass && !found) {
      const Key key{one.file, one.scope, "." + std::string(name)};
      if (open_.contains(key)) {
        found = true;
        continue;
      }
      if (enter(key)) {
        out = stronger(std::move(out), field_of(*one.file, one.scope, name, where, found));
        leave(key);
      }
    } else if (one.kind == Definition::Kind::kLibrary && !found) {
      if (const SourceRow* row = source_of_member(one.qualified, name)) {
        found = true;
        out = stronger(std::move(out), of_row(*row));
      }
    }
  }
  if (found && out.source != Source::kUniform) {
    add_step(out, *where.file, node);
  }
  return out;
}

/// A function that replaces a method: `model.check = compared(model)`.
Origin Slicer::put_in_place(std::string_view name, const Where& where) {
  Origin out = of(Source::kUniform);
  for (const File& file : files_.all()) {
    const auto [first, last] = file.facts->attributes.equal_range(name);
    for (auto one = first; one != last; ++one) {
      const Binding& binding = one->second.binding;
      const bool own = binding.target.starts_with("self.") || binding.target.starts_with("cls.");
      const Key key{&file, one->second.scope, "=" + binding.target};
      if (binding.kind == BindingKind::kAssign && binding.value && !own && !open_.contains(key) &&
          enter(key)) {
        out = stronger(std::move(out), bound(binding, file, one->second.scope, where));
        leave(key);
      }
    }
  }
  return out;
}

/// Values that other classes and functions give to the attribute of an object of this very class:
/// `self.tracker.last = loss.item()`.
Origin Slicer::set_from_outside(const Definition& owner, std::string_view name,
                                const Where& where) {
  Origin out = of(Source::kUniform);
  for (const File& file : files_.all()) {
    const auto [first, last] = file.facts->attributes.equal_range(name);
    for (auto one = first; one != last; ++one) {
      const auto& [scope, binding] = one->second;
      const bool sets = binding.kind == BindingKind::kAssign && binding.value && !binding.item &&
                        binding.node.is(NodeKind::kAttribute);
      const Node object = sets ? binding.node.field(Field::kObject) : Node();
      if (!object || object.text() == "self" || object.text() == "cls") {
        continue;
      }
      const Definition is = class_of_value(object, {.file = &file, .scope = scope});
      const Key key{&file, scope, "=" + binding.target};
      if (is.kind == Definition::Kind::kClass && is.file == owner.file && is.scope == owner.scope &&
          !open_.contains(key) && enter(key)) {
        out = stronger(std::move(out), bound(binding, file, scope, where));
        leave(key);
      }
    }
  }
  return out;
}

/// The object's class is unknown: considers every known class with such an attribute.
Origin Slicer::any_member(std::string_view name, const Where& where, bool& found) {
  constexpr int kMost = 12;
  Origin out = of(Source::kUniform);
  const Key key{nullptr, 0, "." + std::string(name)};
  if (open_.contains(key)) {
    found = true;  // it forwards to an attribute of its name, perhaps of a library's object
    const SourceRow* row = source_of_attribute(name);
    return row == nullptr ? out : of_row(*row, true);
  }
  if (!enter(key)) {
    return out;
  }
  int seen = 0;
  for (const File& file : files_.all()) {
    const auto [first, last] = file.facts->attributes.equal_range(name);
    for (auto one = first; one != last && seen < kMost; ++one) {
      const Binding& binding = one->second.binding;
      const bool typed_only = binding.kind == BindingKind::kAssign && !binding.value;
      if (binding.kind != BindingKind::kMethod && binding.kind != BindingKind::kDefine &&
          !typed_only) {
        found = true;
        ++seen;
        out = stronger(std::move(out), bound(binding, file, one->second.scope, where));
      }
    }
    const auto [begin, end] = file.facts->functions.equal_range(name);
    for (auto one = begin; one != end && seen < kMost; ++one) {
      if (is_property(file.scopes()[one->second]) && !is_abstract(file.scopes()[one->second])) {
        found = true;
        ++seen;
        out = stronger(std::move(out), entered(file, one->second, {}, where));
      }
    }
    // A field without a value: the constructor's argument, also if another class has a value.
    for (std::size_t i = 0; i < file.scopes().size() && seen < kMost; ++i) {
      if (file.scopes()[i].kind == ScopeKind::kClass) {
        bool of_this = false;
        Origin field = found ? made_with(file, i, name, where, of_this)
                             : field_of(file, i, name, where, of_this);
        found = found || of_this;
        out = stronger(std::move(out), std::move(field));
      }
    }
  }
  leave(key);
  return out;
}

}  // namespace ddpdoctor::program
