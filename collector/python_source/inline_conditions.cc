// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/inline_conditions.h"

#include <algorithm>
#include <utility>

namespace ddpdoctor::python_source {
namespace {

bool calls_on(Tokens tokens, int line) {
  const bool covers = !tokens.empty() && tokens.front().line <= line && line <= tokens.back().line;
  return covers && std::any_of(tokens.begin(), tokens.end(),
                               [](const Token& token) { return token.is("("); });
}

/// The right-hand side of an assignment, what is returned, awaited or negated, without grouping
/// parentheses.
Tokens bare(Tokens tokens) {
  if (!tokens.empty()) {
    tokens = split_at(tokens, "=", tokens.front().depth).back();
  }
  while (!tokens.empty()) {
    const Token& first = tokens.front();
    const bool grouped = first.is("(") && tokens.back().is(")") &&
                         tokens.back().depth == first.depth &&
                         find_token(tokens, ")", first.depth) == tokens.size() - 1;
    if (grouped) {
      tokens = tokens.subspan(1, tokens.size() - 2);
    } else if (first.is("return") || first.is("await") || first.is("not")) {
      tokens = tokens.subspan(1);
    } else {
      break;
    }
  }
  return tokens;
}

Block block(BlockKind kind, Tokens expression, Tokens condition, int indent) {
  Block out;
  out.kind = kind;
  out.line = condition.front().line;
  out.indent = indent;
  out.text = text_of(expression);
  out.condition = text_of(condition);
  out.within = true;
  return out;
}

/// One step inwards: notes the condition and returns the part it leads to; empty when there is
/// none.
Tokens step_into(Tokens expression, int line, int indent, std::vector<Block>& out) {
  const int depth = expression.front().depth;
  const auto at = [&](std::string_view word) { return find_token(expression, word, depth); };
  const std::size_t none = expression.size();
  if (at("lambda") != none || at("for") != none) {
    return {};
  }
  const std::size_t when = at("if");
  const std::size_t otherwise = at("else");
  if (when < otherwise && otherwise != none) {
    const Tokens condition = expression.subspan(when + 1, otherwise - when - 1);
    const Tokens then_part = expression.first(when);
    const Tokens else_part = expression.subspan(otherwise + 1);
    if (condition.empty()) {
      return {};
    }
    if (calls_on(then_part, line)) {
      out.push_back(block(BlockKind::kIf, expression, condition, indent));
      return then_part;
    }
    if (calls_on(else_part, line)) {
      out.push_back(block(BlockKind::kElse, expression, condition, indent));
      return else_part;
    }
    return {};
  }
  for (const std::string_view word : {"or", "and"}) {
    const auto parts = split_at(expression, word, depth);
    std::size_t before = expression.size();
    for (std::size_t i = parts.size(); i-- > 1;) {
      before -= parts[i].size() + 1;
      if (calls_on(parts[i], line) && before > 0) {
        const auto kind = word == "or" ? BlockKind::kElse : BlockKind::kIf;
        out.push_back(block(kind, expression, expression.first(before), indent));
        return parts[i];
      }
    }
    if (parts.size() > 1) {
      return {};
    }
  }
  return {};
}

}  // namespace

std::vector<Block> inline_conditions(const Structure& structure, std::size_t statement, int line) {
  const Statement& where = structure.statements[statement];
  const bool in_body =
      !where.kind || (where.has_inline_body() && where.body().front().line <= line);
  std::vector<Block> out;
  for (const Tokens part : split_at(in_body ? where.body() : where.header(), ";", 0)) {
    Tokens expression = bare(part);
    while (!expression.empty()) {
      expression = bare(step_into(expression, line, where.logical.indent, out));
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace ddpdoctor::python_source
