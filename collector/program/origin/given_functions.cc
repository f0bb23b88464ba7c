// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/given_functions.h"

#include <algorithm>

#include "collector/program/origin/passing.h"

namespace ddpdoctor::program {
namespace {

constexpr int kMostArguments = 256;  // whose values are followed

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

void add_handed(const CallIn& call, const File& from, const Files& files, int& left,
                std::vector<GivenFunction>& out) {
  for (const Node argument : arguments_of(call.call)) {
    const bool named = argument.is(NodeKind::kKeywordArgument);
    const Node value = without_parentheses(named ? argument.field(Field::kValue) : argument);
    if (!value.is(NodeKind::kName) && !value.is(NodeKind::kAttribute) &&
        !value.is(NodeKind::kCall)) {
      continue;
    }
    if (left-- <= 0) {
      return;
    }
    Slicer slicer(files, nullptr);
    const Where where = where_of(from, value);
    std::vector<Callee> found;
    for (const Callable& one : slicer.functions(value, where)) {
      found.push_back({.file = one.file, .scope = one.scope});
    }
    const Definition type = slicer.class_of_value(value, where);
    if (type.kind == Definition::Kind::kClass) {
      const auto method = methods_of(type, "__call__", files);
      found.insert(found.end(), method.begin(), method.end());
    }
    for (const Callee& one : found) {
      out.push_back({.callee = one,
                     .handed = true,
                     .keyword = std::string(named ? argument.field(Field::kName).text() : "")});
    }
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
  int left = kMostArguments;
  for (const File& file : files.all()) {
    for (const auto& [callee, call] : file.facts->calls) {
      if (calls_library(call, file, files)) {
        add_handed(call, file, files, left, out);
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
