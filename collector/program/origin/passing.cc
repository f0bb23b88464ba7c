// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/passing.h"

#include <string>

#include "collector/program/libraries/libraries.h"
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

constexpr std::size_t kMostCallersPassing = 24;

/// The call may be a call of that function, by its name.
bool may_call(Node call, std::string_view name) {
  const Node callee = call.field(Field::kFunction);
  const Node last = callee.is(NodeKind::kAttribute) ? callee.field(Field::kAttribute) : callee;
  return last.text() == name;
}

/// The argument that a library passes to the function that this call gives it.
Node argument_run(const Files& files, const ParameterOf& parameter, std::string_view name,
                  const CallIn& call, const File& from) {
  const Definition is =
      files.resolve(from, call.scope, dotted_name(call.call.field(Field::kFunction)));
  const RunsRow* runs =
      is.kind == Definition::Kind::kLibrary ? runs_function(is.qualified) : nullptr;
  if (runs == nullptr) {
    return {};
  }
  bool bound = false;  // `target=self.work`
  for (const Node argument : arguments_of(call.call)) {
    const Node value =
        argument.is(NodeKind::kKeywordArgument) ? argument.field(Field::kValue) : argument;
    bound =
        bound || (value.is(NodeKind::kAttribute) && value.field(Field::kAttribute).text() == name);
  }
  const std::size_t own = bound && is_method(parameter.file, parameter.scope) ? 1 : 0;
  const std::size_t skipped = own + (runs->rank_first ? 1 : 0);
  const std::vector<Node> given = tuple_argument(call.call, "args");
  const bool is_given = parameter.index >= skipped && parameter.index - skipped < given.size();
  return is_given ? given[parameter.index - skipped] : Node();
}

}  // namespace

std::size_t number_of(const Scope& scope, std::string_view name) {
  for (std::size_t i = 0; i < scope.parameters.size(); ++i) {
    if (scope.parameters[i].name == name) {
      return i;
    }
  }
  return kNoParameter;
}

bool is_method(const File& file, std::size_t scope) {
  const std::size_t outer = file.scopes()[scope].outer;
  return outer != kNone && file.scopes()[outer].kind == ScopeKind::kClass;
}

Node argument_for(Node call, const Scope& scope, std::size_t index, std::size_t skipped) {
  std::size_t position = skipped;
  for (const Node argument : arguments_of(call)) {
    if (argument.is(NodeKind::kKeywordArgument)) {
      if (argument.field(Field::kName).text() == scope.parameters[index].name) {
        return argument.field(Field::kValue);
      }
    } else if (argument.is(NodeKind::kListSplat) || argument.is(NodeKind::kDictionarySplat)) {
      position = kNoParameter / 2;
    } else if (position++ == index) {
      const auto kind = scope.parameters[index].kind;
      const bool takes =
          kind == Parameter::Kind::kPlain || kind == Parameter::Kind::kPositionalOnly;
      if (takes) {
        return argument;
      }
    }
  }
  return {};
}

std::vector<Node> tuple_argument(Node call, std::string_view keyword) {
  for (const Node argument : arguments_of(call)) {
    if (argument.is(NodeKind::kKeywordArgument) && argument.field(Field::kName).text() == keyword) {
      return without_parentheses(argument.field(Field::kValue)).children();
    }
  }
  return {};
}

Node argument_passed(const Files& files, const ParameterOf& parameter, const CallIn& call,
                     const File& from, bool& calls) {
  const auto& [file, scope, index] = parameter;
  const Scope& function = file.scopes()[scope];
  const Node callee = call.call.field(Field::kFunction);
  const bool method = is_method(file, scope);
  const bool made = method && function.name == "__init__";
  const std::string_view name =
      made ? std::string_view(file.scopes()[function.outer].name) : function.name;
  const Definition is = files.resolve(from, call.scope, dotted_name(callee));
  calls = may_call(call.call, name) && is.kind != Definition::Kind::kLibrary &&
          (is.kind != Definition::Kind::kFunction || (is.file == &file && is.scope == scope));
  const bool through_object = method && (made || callee.is(NodeKind::kAttribute));
  return calls ? argument_for(call.call, function, index, through_object ? 1 : 0) : Node();
}

std::vector<Passed> all_passed(const Files& files, const ParameterOf& parameter) {
  const Scope& function = parameter.file.scopes()[parameter.scope];
  const bool made = function.name == "__init__" && is_method(parameter.file, parameter.scope);
  const std::string& called = made ? parameter.file.scopes()[function.outer].name : function.name;
  std::vector<Passed> out;
  const auto add = [&](Node given, const File& from, std::size_t scope) {
    if (given && out.size() < kMostCallersPassing) {
      out.push_back({.node = given, .file = &from, .scope = scope});
    }
  };
  for (const File& from : files.all()) {
    const auto [first, last] = from.facts->calls.equal_range(called);
    for (auto one = first; one != last; ++one) {
      bool calls = false;
      const Node given = argument_passed(files, parameter, one->second, from, calls);
      if (calls && !given) {
        add(function.parameters[parameter.index].otherwise, parameter.file, 0);
      }
      add(given, from, one->second.scope);
    }
    const auto [begin, end] = from.facts->arguments.equal_range(called);
    for (auto one = begin; one != end; ++one) {
      add(argument_run(files, parameter, called, one->second, from), from, one->second.scope);
    }
  }
  return out;
}

}  // namespace ddpdoctor::program
