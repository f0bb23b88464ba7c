// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/parameters.h"

#include <optional>
#include <utility>

#include "collector/python_source/assignments.h"

namespace ddpdoctor::python_source {
namespace {

/// The tokens between the bracket at `open` and the one that closes it, cut at its commas.
std::vector<Tokens> list_in_brackets(Tokens tokens, std::size_t open) {
  const int depth = tokens[open].depth;
  std::size_t end = open + 1;
  while (end < tokens.size() && tokens[end].depth > depth) {
    ++end;
  }
  const Tokens inside = tokens.subspan(open + 1, end - open - 1);
  return inside.empty() ? std::vector<Tokens>() : split_at(inside, ",", depth + 1);
}

/// "section" of `def section(…)`; of __init__ the class around it.
std::string callee_name(const Structure& structure, std::size_t function) {
  const Statement& def = structure.statements[function];
  const std::string_view name = def.tokens()[def.keyword + 1].text;
  const std::size_t parent = def.parent;
  const bool of_class =
      parent != kNowhere && structure.statements[parent].kind == BlockKind::kClass;
  if (name == "__init__" && of_class) {
    const Statement& around = structure.statements[parent];
    return around.keyword + 1 < around.tokens().size()
               ? std::string(around.tokens()[around.keyword + 1].text)
               : std::string();
  }
  return std::string(name);
}

std::optional<Parameter> parameter_of(const Structure& structure, std::string_view name,
                                      std::size_t function) {
  const Statement& def = structure.statements[function];
  const Tokens tokens = def.tokens();
  const std::size_t open = def.keyword + 2;
  if (def.kind != BlockKind::kFunction || open >= tokens.size() || !tokens[open].is("(")) {
    return std::nullopt;
  }
  std::size_t place = 0;
  bool by_keyword = false;
  for (const Tokens part : list_in_brackets(tokens, open)) {
    if (part.empty() || part.front().is("/")) {
      continue;
    }
    if (part.front().is("*") || part.front().is("**")) {
      by_keyword = true;
      continue;
    }
    const bool bound = place == 0 && (part.front().is("self") || part.front().is("cls"));
    if (part.front().is(name)) {
      return Parameter{.callee = callee_name(structure, function),
                       .name = std::string(name),
                       .place = by_keyword ? kByKeywordOnly : place};
    }
    place += bound ? 0 : 1;
  }
  return std::nullopt;
}

/// Of the innermost function around that has such a parameter, unless the name is bound nearer.
std::optional<Parameter> parameter_named(const Structure& structure, std::string_view name,
                                         std::size_t at) {
  for (std::size_t function = structure.function_around(at); function != kNowhere;
       function = structure.function_around(function)) {
    if (auto found = parameter_of(structure, name, function)) {
      return found;
    }
    if (!assignments_of(structure, name, function).empty()) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// What `call` passes for the parameter; empty when it leaves it to its default.
Tokens passed(const std::vector<Tokens>& arguments, const Parameter& parameter) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Tokens argument = arguments[i];
    const bool named = argument.size() > 2 && argument[1].is("=");
    if (named && argument.front().is(parameter.name)) {
      return argument.subspan(2);
    }
    if (!argument.empty() && argument.front().is("*")) {
      return {};
    }
    if (!named && i == parameter.place) {
      return argument;
    }
  }
  return {};
}

}  // namespace

std::vector<Parameter> parameters_behind(std::string_view condition, const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  std::vector<Parameter> out;
  if (at == kNowhere) {
    return out;
  }
  const std::vector<Token> tokens = tokens_of(condition);
  for (const NameChain& chain : name_chains(tokens)) {
    const bool own = chain.words.size() == 2 && chain.words.front() == "self";
    if (chain.words.size() == 1) {
      if (auto found = parameter_named(structure, chain.words.front(), at)) {
        out.push_back(std::move(*found));
      }
    } else if (own) {
      const std::string name = "self." + std::string(chain.words.back());
      for (const Assignment& set : assignments_of(structure, name, kNowhere)) {
        const auto sources = name_chains(set.value);
        auto found = sources.size() == 1 && sources.front().words.size() == 1
                         ? parameter_named(structure, sources.front().words.front(), set.statement)
                         : std::nullopt;
        if (found) {
          out.push_back(std::move(*found));
        }
      }
    }
  }
  return out;
}

std::vector<Argument> arguments_for(const Parameter& parameter, const Lines& lines) {
  std::vector<Argument> out;
  for (const Statement& statement : structure_of(lines).statements) {
    const LogicalLine& logical = statement.logical;
    const Tokens tokens(logical.tokens);
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const bool defines = i > 0 && (tokens[i - 1].is("def") || tokens[i - 1].is("class"));
      if (defines || !tokens[i].is(parameter.callee) || !tokens[i + 1].is("(")) {
        continue;
      }
      const Tokens value = passed(list_in_brackets(tokens, i + 1), parameter);
      if (!value.empty()) {
        out.push_back(
            {.text = text_of(value), .line = logical.first_line, .last_line = logical.last_line});
      }
    }
  }
  return out;
}

}  // namespace ddpdoctor::python_source
