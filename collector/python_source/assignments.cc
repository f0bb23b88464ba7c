// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/assignments.h"

#include <algorithm>

namespace ddpdoctor::python_source {
namespace {

/// "( a , b )" → "a , b"
Tokens without_parentheses(Tokens tokens) {
  while (tokens.size() >= 2 && tokens.front().is("(") && tokens.back().is(")") &&
         tokens.front().depth == tokens.back().depth &&
         find_token(tokens.subspan(1), ")", tokens.front().depth) == tokens.size() - 2) {
    tokens = tokens.subspan(1, tokens.size() - 2);
  }
  return tokens;
}

bool reads(Tokens tokens, std::string_view name) {
  std::string text;
  for (const Token& token : tokens) {
    text += token.text;
    if (text.size() > name.size()) {
      return false;
    }
  }
  return text == name;
}

/// The value that `target = value` gives to `name`, when it does.
void match_target(Tokens target, Tokens value, std::string_view name, std::size_t statement,
                  std::vector<Assignment>& out) {
  target = target.first(find_token(target, ":", 0));  // x: int = 3
  target = without_parentheses(target);
  if (target.empty()) {
    return;
  }
  const auto targets = split_at(target, ",", target.front().depth);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!reads(targets[i], name)) {
      continue;
    }
    const Tokens inner = without_parentheses(value);
    const auto values =
        inner.empty() ? std::vector<Tokens>() : split_at(inner, ",", inner.front().depth);
    const bool pairwise = targets.size() > 1 && values.size() == targets.size();
    out.push_back({.value = pairwise ? values[i] : value, .statement = statement});
  }
}

bool is_augmented(const Token& token) {
  return token.depth == 0 && token.text.size() >= 2 && token.text.back() == '=' &&
         token.kind == TokenKind::kOperator && !token.is("==") && !token.is("!=") &&
         !token.is("<=") && !token.is(">=") && !token.is(":=");
}

void match_simple(Tokens part, std::string_view name, std::size_t statement,
                  std::vector<Assignment>& out) {
  const auto augmented = std::find_if(part.begin(), part.end(), is_augmented);
  if (augmented != part.end()) {
    const auto at = static_cast<std::size_t>(augmented - part.begin());
    match_target(part.first(at), part.subspan(at + 1), name, statement, out);
    return;
  }
  const auto sides = split_at(part, "=", 0);
  for (std::size_t i = 0; i + 1 < sides.size(); ++i) {
    match_target(sides[i], sides.back(), name, statement, out);
  }
}

void match_walrus(Tokens tokens, std::string_view name, std::size_t statement,
                  std::vector<Assignment>& out) {
  for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (tokens[i].is(":=") && tokens[i - 1].text == name) {
      const int depth = tokens[i].depth;
      Tokens value = tokens.subspan(i + 1);
      const auto end = std::find_if(value.begin(), value.end(), [depth](const Token& token) {
        return token.depth < depth || (token.depth == depth && token.is(","));
      });
      out.push_back({.value = value.first(static_cast<std::size_t>(end - value.begin())),
                     .statement = statement});
    }
  }
}

void match_for(const Statement& loop, std::string_view name, std::size_t statement,
               std::vector<Assignment>& out) {
  const Tokens all = loop.tokens().first(loop.colon).subspan(loop.keyword + 1);
  const std::size_t in = find_token(all, "in", 0);
  const Tokens target = without_parentheses(all.first(in));
  if (target.empty()) {
    return;
  }
  for (const Tokens part : split_at(target, ",", target.front().depth)) {
    if (reads(part, name)) {
      out.push_back({.value = loop.header(), .statement = statement});
    }
  }
}

}  // namespace

std::vector<Assignment> assignments_of(const Structure& structure, std::string_view name,
                                       std::size_t function) {
  std::vector<Assignment> out;
  const bool attribute = name.find('.') != std::string_view::npos;
  for (std::size_t i = 0; i < structure.statements.size(); ++i) {
    const Statement& statement = structure.statements[i];
    const bool mentions =
        std::any_of(statement.tokens().begin(), statement.tokens().end(), [&](const Token& token) {
          return token.kind == TokenKind::kName && name.ends_with(token.text);
        });
    if (!mentions || (!attribute && structure.function_around(i) != function)) {
      continue;
    }
    for (const Tokens part : split_at(statement.body(), ";", 0)) {
      match_simple(part, name, i, out);
    }
    match_walrus(statement.tokens(), name, i, out);
    if (statement.kind == BlockKind::kFor) {
      match_for(statement, name, i, out);
    }
  }
  return out;
}

std::vector<Assignment> returns_of(const Structure& structure, std::string_view name) {
  std::vector<Assignment> out;
  for (std::size_t i = 0; i < structure.statements.size(); ++i) {
    const Statement& function = structure.statements[i];
    const bool wanted = function.kind == BlockKind::kFunction &&
                        function.keyword + 1 < function.tokens().size() &&
                        function.tokens()[function.keyword + 1].text == name;
    if (!wanted) {
      continue;
    }
    const std::size_t end = function.has_inline_body() ? i + 1 : structure.end_of_suite(i);
    for (std::size_t j = i; j < end; ++j) {
      if (structure.function_around(j) != i) {
        continue;
      }
      for (const Tokens part : split_at(structure.statements[j].body(), ";", 0)) {
        if (!part.empty() && part.front().is("return")) {
          out.push_back({.value = part.subspan(1), .statement = j});
        }
      }
    }
  }
  return out;
}

}  // namespace ddpdoctor::python_source
