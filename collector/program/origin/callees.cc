// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/callees.h"

#include <algorithm>
#include <string_view>

#include "collector/program/origin/passing.h"

namespace ddpdoctor::program {
namespace {

constexpr std::size_t kMostOverrides = 4;

/// The method that the class itself defines.
const std::size_t* method_of(const Definition& of, std::string_view name) {
  const auto [begin, end] = of.file->facts->functions.equal_range(name);
  for (auto one = begin; one != end; ++one) {
    if (of.file->scopes()[one->second].outer == of.scope) {
      return &one->second;
    }
  }
  return nullptr;
}

bool is_of_user(const Definition& one) {
  return one.kind == Definition::Kind::kClass;
}

/// A call of an object: its class decides which method runs.
std::vector<Callee> called_object(const Definition& owner, const Files& files) {
  auto found = methods_of(owner, "__call__", files);
  return found.empty() ? methods_of(owner, "forward", files) : found;  // for a torch.nn.Module
}

std::vector<Callee> method(Node callee, const Where& where, Slicer& slicer) {
  const Files& files = slicer.files();
  const std::string_view name = callee.field(Field::kAttribute).text();
  const Node object = callee.field(Field::kObject);
  const Definition owner = slicer.class_of_value(object, where);
  if (owner.kind == Definition::Kind::kUnknown) {
    auto found = methods_named(name, files);
    return found.size() == 1 ? found : std::vector<Callee>{};
  }
  if (!is_of_user(owner)) {
    return {};
  }
  auto found = methods_of(owner, name, files);
  if (dotted_name(object) == "self") {  // perhaps of a class derived from this one
    for (const Callee& one : overrides_of(owner, name, files)) {
      if (std::find(found.begin(), found.end(), one) == found.end()) {
        found.push_back(one);
      }
    }
  }
  if (found.empty()) {  // an attribute that holds an object
    const Definition held = slicer.class_of_value(callee, where);
    found = is_of_user(held) ? called_object(held, files) : found;
  }
  found.resize(std::min(found.size(), kMostOverrides));
  return found;
}

}  // namespace

std::vector<Callee> methods_named(std::string_view name, const Files& files) {
  std::vector<Callee> out;
  for (const File& file : files.all()) {
    const auto [begin, end] = file.facts->functions.equal_range(name);
    for (auto one = begin; one != end; ++one) {
      const Callee found{.file = &file, .scope = one->second};
      if (is_method(file, one->second) && std::find(out.begin(), out.end(), found) == out.end()) {
        out.push_back(found);
      }
    }
  }
  return out;
}

std::vector<Callee> methods_of(const Definition& owner, std::string_view name, const Files& files) {
  for (const Definition& one : files.bases_of(owner)) {
    const std::size_t* const method =
        one.kind == Definition::Kind::kClass ? method_of(one, name) : nullptr;
    if (method != nullptr) {
      return {{.file = one.file, .scope = *method}};
    }
  }
  return {};
}

std::vector<Callee> overrides_of(const Definition& base, std::string_view name,
                                 const Files& files) {
  std::vector<Callee> out = methods_named(name, files);
  std::erase_if(out, [&](const Callee& one) {
    const Definition of{
        .kind = Definition::Kind::kClass, .file = one.file, .scope = one.function().outer};
    const auto bases = files.bases_of(of);
    return std::none_of(bases.begin(), bases.end(), [&base](const Definition& other) {
      return other.file == base.file && other.scope == base.scope &&
             other.kind == Definition::Kind::kClass;
    });
  });
  return out;
}

std::vector<Callee> callees_of(Node call, const Where& where, Slicer& slicer) {
  const Files& files = slicer.files();
  const Node callee = without_parentheses(call.field(Field::kFunction));
  const std::string dotted = dotted_name(callee);
  const Definition is =
      dotted.empty() ? Definition{} : files.resolve(*where.file, where.scope, dotted);
  switch (is.kind) {
    case Definition::Kind::kFunction:
      return {{.file = is.file, .scope = is.scope}};
    case Definition::Kind::kClass:
      return methods_of(is, "__init__", files);
    case Definition::Kind::kLibrary:
      return {};
    case Definition::Kind::kModule:
    case Definition::Kind::kVariable:
    case Definition::Kind::kUnknown:
      break;
  }
  if (callee.is(NodeKind::kAttribute)) {
    return method(callee, where, slicer);
  }
  const Definition owner = slicer.class_of_value(callee, where);
  return is_of_user(owner) ? called_object(owner, files) : std::vector<Callee>{};
}

}  // namespace ddpdoctor::program
