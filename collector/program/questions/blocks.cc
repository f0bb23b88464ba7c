// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/blocks.h"

#include <algorithm>

#include "collector/program/questions/block_of.h"

namespace ddpdoctor::program {
namespace {

BlockKind kind_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::kElif:
      return BlockKind::kElif;
    case NodeKind::kElse:
      return BlockKind::kElse;
    case NodeKind::kFor:
      return BlockKind::kFor;
    case NodeKind::kWhile:
      return BlockKind::kWhile;
    case NodeKind::kTry:
      return BlockKind::kTry;
    case NodeKind::kExcept:
      return BlockKind::kExcept;
    case NodeKind::kFinally:
      return BlockKind::kFinally;
    case NodeKind::kWith:
      return BlockKind::kWith;
    case NodeKind::kMatch:
      return BlockKind::kMatch;
    case NodeKind::kCase:
      return BlockKind::kCase;
    case NodeKind::kFunction:
      return BlockKind::kFunction;
    case NodeKind::kClass:
      return BlockKind::kClass;
    default:
      return BlockKind::kIf;
  }
}

/// "a or b" of `if a: … elif b: … else:`; for the else of a loop, the loop's expression.
std::string chain_condition(const Code& code, std::size_t clause) {
  std::string out;
  for (std::size_t i = code.link_before(clause); i != kNone; i = code.link_before(i)) {
    if (code.kind(i) == NodeKind::kExcept || code.kind(i) == NodeKind::kTry) {
      return {};  // no condition: no exception was raised
    }
    const std::string condition = code.header_expression(i);
    if (!condition.empty()) {
      out = out.empty() ? condition : condition + " or " + out;
    }
  }
  return out;
}

}  // namespace

Block block_of(const Code& code, std::size_t header) {
  const Statement& statement = code[header];
  Block out;
  out.kind = kind_of(statement.node.kind());
  out.line = statement.line;
  out.indent = statement.node.indent();
  out.text = code.header_text(header);
  const std::size_t before = out.kind == BlockKind::kElse ? code.link_before(header) : kNone;
  out.tested = before == kNone ? 0 : code[before].line;
  out.condition =
      out.kind == BlockKind::kElse ? chain_condition(code, header) : code.header_expression(header);
  return out;
}

bool is_branch(BlockKind kind) {
  return kind == BlockKind::kIf || kind == BlockKind::kElif || kind == BlockKind::kElse ||
         kind == BlockKind::kExcept || kind == BlockKind::kMatch || kind == BlockKind::kCase;
}

std::vector<Block> enclosing(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  std::vector<Block> out;
  for (const std::size_t header :
       at == kNone ? std::vector<std::size_t>() : code.headers_around(at)) {
    out.push_back(block_of(code, header));
  }
  return out;
}

std::optional<Block> loop_around(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  const std::size_t loop = at == kNone ? kNone : code.loop_around(at);
  return loop == kNone ? std::nullopt : std::optional(block_of(code, loop));
}

std::optional<std::pair<int, int>> function_extent(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  const std::size_t function = at == kNone ? kNone : code.function_around(at);
  if (function == kNone) {
    return std::nullopt;
  }
  const std::size_t last = code.end_of_suite(function) - 1;
  return std::pair(code[function].line, code[last].last_line);
}

std::vector<Block> decorators_of(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  const std::size_t function = at == kNone ? kNone : code.function_around(at);
  std::vector<Block> out;
  for (std::size_t i = function == kNone ? 0 : function; i-- > 0;) {
    const Node decorator = code[i].node;
    if (!decorator.is(NodeKind::kDecorator) || decorator.parent() != code[function].node.parent()) {
      break;
    }
    out.push_back({.kind = BlockKind::kFunction,
                   .line = decorator.line(),
                   .indent = decorator.indent(),
                   .text = decorator.one_line(),
                   .condition = decorator.first_child().one_line()});
  }
  return out;
}

std::string statement_at(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  return at == kNone ? std::string() : code.logical_line(at);
}

std::vector<Case> cases_of(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t match = code.at(line);
  std::vector<Case> out;
  if (match == kNone || code.kind(match) != NodeKind::kMatch) {
    return out;
  }
  for (const std::size_t one : code.clauses(match)) {
    out.push_back({.line = code[one].line,
                   .pattern = code.header_expression(one),
                   .last_line = code[code[one].end - 1].last_line});
  }
  return out;
}

}  // namespace ddpdoctor::program
