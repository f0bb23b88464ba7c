// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/given_functions.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "collector/program/origin/passing.h"

namespace ddpdoctor::program {
namespace {

constexpr int kMostCalls = 512;  // whose callee and arguments are followed

bool is_called_by_user(std::string_view name, const Files& files) {
  return std::any_of(files.all().begin(), files.all().end(),
                     [name](const File& file) { return file.facts->calls.contains(name); });
}

/// `DataLoader(…)`, `Net(…)` of a class that extends a library's, `engine.on(…)` of an object that
/// the user did not define.
bool calls_library(const CallIn& call, const File& from, const Files& files) {
  const Node callee = without_parentheses(call.call.field(Field::kFunction));
  const std::string dotted = dotted_name(callee);
  const Definition is = dotted.empty() ? Definition{} : files.resolve(from, call.scope, dotted);
  if (is.kind == Definition::Kind::kLibrary || is.kind == Definition::Kind::kClass) {
    return is_of_library(is, files);
  }
  if (is.kind == Definition::Kind::kFunction || !callee.is(NodeKind::kAttribute)) {
    return false;
  }
  const Definition owner =
      Slicer(files, nullptr).class_of_value(callee.field(Field::kObject), where_of(from, callee));
  return owner.kind == Definition::Kind::kUnknown || is_of_library(owner, files);
}

/// Names of the user's functions, and whether an object of a class of the user's can be called.
struct CallableNames {
  std::set<std::string_view> functions;
  bool objects = false;
};

CallableNames callable_names(const Files& files) {
  CallableNames out;
  for (const File& file : files.all()) {
    for (const auto& [name, scope] : file.facts->functions) {
      out.functions.insert(name);
      out.objects = out.objects || name == "__call__";
    }
  }
  return out;
}

Node value_of(Node argument) {
  return without_parentheses(argument.is(NodeKind::kKeywordArgument) ? argument.field(Field::kValue)
                                                                     : argument);
}

/// By its form, before it is followed: a function's name, or perhaps an object.
bool may_be_callable(Node value, const CallableNames& known) {
  const bool named = value.is(NodeKind::kName) || value.is(NodeKind::kAttribute);
  const Node last = value.is(NodeKind::kAttribute) ? value.field(Field::kAttribute) : value;
  return (named && known.functions.contains(last.text())) ||
         (known.objects && (named || value.is(NodeKind::kCall)));
}

/// `pack`, `helpers.pack`, `self.pack`; for an object, its `__call__`.
std::vector<Callee> run_by_calling(Node value, const File& from, const Files& files) {
  const Where where = where_of(from, value);
  const std::string dotted = dotted_name(value);
  const Definition is = dotted.empty() ? Definition{} : files.resolve(from, where.scope, dotted);
  if (is.kind == Definition::Kind::kFunction) {
    return {{.file = is.file, .scope = is.scope}};
  }
  Slicer slicer(files, nullptr);
  if (value.is(NodeKind::kAttribute)) {
    const Definition owner = slicer.class_of_value(value.field(Field::kObject), where);
    const std::string_view name = value.field(Field::kAttribute).text();
    auto method = owner.kind == Definition::Kind::kClass ? methods_of(owner, name, files)
                                                         : std::vector<Callee>{};
    if (!method.empty()) {
      return method;
    }
  }
  const Definition type = slicer.class_of_value(value, where);
  return type.kind == Definition::Kind::kClass ? methods_of(type, "__call__", files)
                                               : std::vector<Callee>{};
}

void add_handed(Node argument, const File& from, const Files& files,
                std::vector<GivenFunction>& out) {
  const std::string_view keyword =
      argument.is(NodeKind::kKeywordArgument) ? argument.field(Field::kName).text() : "";
  for (const Callee& one : run_by_calling(value_of(argument), from, files)) {
    out.push_back({.callee = one, .handed = true, .keyword = std::string(keyword)});
  }
}

}  // namespace

bool is_of_library(const Definition& type, const Files& files) {
  if (type.kind == Definition::Kind::kLibrary) {
    return true;
  }
  const auto bases =
      type.kind == Definition::Kind::kClass ? files.bases_of(type) : std::vector<Definition>{};
  return std::any_of(bases.begin(), bases.end(), [](const Definition& base) {
    return base.kind == Definition::Kind::kLibrary;
  });
}

std::vector<GivenFunction> given_functions(const Files& files) {
  std::vector<GivenFunction> out;
  const CallableNames known = callable_names(files);
  int left = kMostCalls;
  for (const File& file : files.all()) {
    for (const auto& [callee, call] : file.facts->calls) {
      std::vector<Node> given = arguments_of(call.call);
      std::erase_if(given, [&known](Node one) { return !may_be_callable(value_of(one), known); });
      left -= given.empty() ? 0 : 1;
      if (given.empty() || left < 0 || !calls_library(call, file, files)) {
        continue;
      }
      for (const Node argument : given) {
        add_handed(argument, file, files, out);
      }
    }
    for (const auto& [name, scope] : file.facts->functions) {
      const bool hook =
          is_method(file, scope) && is_of_library({.kind = Definition::Kind::kClass,
                                                   .file = &file,
                                                   .scope = file.scopes()[scope].outer},
                                                  files);
      if (hook) {
        out.push_back({.callee = {.file = &file, .scope = scope}});
      }
    }
  }
  std::erase_if(out, [&files](const GivenFunction& one) {
    return is_called_by_user(one.callee.function().name, files);
  });
  std::vector<GivenFunction> once;
  for (GivenFunction& one : out) {
    if (std::none_of(once.begin(), once.end(),
                     [&one](const GivenFunction& other) { return other.callee == one.callee; })) {
      once.push_back(std::move(one));
    }
  }
  return once;
}

}  // namespace ddpdoctor::program
