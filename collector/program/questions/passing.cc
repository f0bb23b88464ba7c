// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/passing.h"

#include <optional>
#include <utility>

#include "collector/program/questions/fragment.h"
#include "collector/program/questions/names.h"

namespace ddpdoctor::program {
namespace {

const Scope* scope_of(const Code& code, std::size_t function) {
  for (const Scope& scope : code.index().scopes()) {
    if (scope.node == code[function].node) {
      return &scope;
    }
  }
  return nullptr;
}

/// "section" of `def section(…)`; of __init__ the class around it.
std::string callee_name(const Code& code, std::size_t function) {
  const Node def = code[function].node;
  const std::size_t parent = code.parent(function);
  const bool of_class = parent != kNone && code.kind(parent) == NodeKind::kClass;
  const std::string_view name = def.field(Field::kName).text();
  return std::string(name == "__init__" && of_class ? code[parent].node.field(Field::kName).text()
                                                    : name);
}

std::optional<PassedParameter> parameter_of(const Code& code, std::string_view name,
                                            std::size_t function) {
  const Scope* const scope = scope_of(code, function);
  std::size_t place = 0;
  for (const Parameter& one : scope == nullptr ? std::vector<Parameter>() : scope->parameters) {
    const bool by_place =
        one.kind == Parameter::Kind::kPlain || one.kind == Parameter::Kind::kPositionalOnly;
    if (one.kind == Parameter::Kind::kStar || one.kind == Parameter::Kind::kDoubleStar) {
      continue;
    }
    if (one.name == name) {
      return PassedParameter{.callee = callee_name(code, function),
                             .name = std::string(name),
                             .place = by_place ? place : kByKeywordOnly};
    }
    const bool bound = place == 0 && (one.name == "self" || one.name == "cls");
    place += bound ? 0 : 1;
  }
  return std::nullopt;
}

/// Of the innermost function around that has such a parameter, unless the name is bound nearer.
std::optional<PassedParameter> parameter_named(const Code& code, std::string_view name,
                                               std::size_t at) {
  for (std::size_t function = code.function_around(at); function != kNone;
       function = code.function_around(function)) {
    if (auto found = parameter_of(code, name, function)) {
      return found;
    }
    if (!values_of(code, name, function).empty()) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// What a call passes for the parameter; nothing when it leaves it to its default.
Node passed(Node arguments, const PassedParameter& parameter) {
  std::size_t place = 0;
  for (Node one = arguments.first_child(); one; one = one.next_sibling(), ++place) {
    if (one.is(NodeKind::kKeywordArgument)) {
      if (one.field(Field::kName).text() == parameter.name) {
        return one.field(Field::kValue);
      }
    } else if (one.is(NodeKind::kListSplat)) {
      return {};
    } else if (place == parameter.place) {
      return one;
    }
  }
  return {};
}

bool calls_by(Node callee, std::string_view name) {
  return (callee.is(NodeKind::kName) && callee.text() == name) ||
         (callee.is(NodeKind::kAttribute) && callee.field(Field::kAttribute).text() == name);
}

}  // namespace

std::vector<PassedParameter> parameters_behind(std::string_view condition, const SourceText& text,
                                               int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  std::vector<PassedParameter> out;
  if (at == kNone) {
    return out;
  }
  const Fragment fragment(condition);
  for (const NameChain& chain : name_chains(fragment.root())) {
    if (chain.words.size() == 1 && !chain.of_result) {
      if (auto found = parameter_named(code, chain.words.front(), at)) {
        out.push_back(std::move(*found));
      }
    } else if (chain.words.size() == 2 && chain.words.front() == "self") {
      for (const Binding& set : values_of(code, chain.dotted(), kNone)) {
        const auto sources = name_chains(set.value);
        auto found = sources.size() == 1 && sources.front().words.size() == 1
                         ? parameter_named(code, sources.front().words.front(), set.statement)
                         : std::nullopt;
        if (found) {
          out.push_back(std::move(*found));
        }
      }
    }
  }
  return out;
}

std::vector<Argument> arguments_for(const PassedParameter& parameter, const SourceText& text) {
  const Code code(text);
  std::vector<Argument> out;
  const Node root = code.index().root();
  each_call(root, [&](Node call) {
    const std::size_t statement = calls_by(call.field(Field::kFunction), parameter.callee)
                                      ? code.index().statement_of(call)
                                      : kNone;
    const Node value =
        statement == kNone ? Node() : passed(call.field(Field::kArguments), parameter);
    if (value) {
      out.push_back({.text = value.one_line(),
                     .line = code[statement].line,
                     .last_line = code[statement].last_line});
    }
  });
  return out;
}

}  // namespace ddpdoctor::program
