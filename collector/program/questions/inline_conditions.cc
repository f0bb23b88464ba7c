// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/inline_conditions.h"

#include <algorithm>

namespace ddpdoctor::program {
namespace {

bool calls_on(Node node, int line) {
  bool calls = false;
  if (node.line() <= line && line <= node.last_line()) {
    each_inside(node, [&calls](Node inner) { calls = calls || inner.is(NodeKind::kCall); });
  }
  return calls;
}

/// The right side of an assignment, or the operand of return, await or not, without parentheses.
Node bare(Node node) {
  while (true) {
    switch (node.kind()) {
      case NodeKind::kAssignment:
      case NodeKind::kAugmentedAssignment:
        node = node.field(Field::kRight);
        break;
      case NodeKind::kNamed:
        node = node.field(Field::kValue);
        break;
      case NodeKind::kExpressionStatement:
      case NodeKind::kParenthesized:
      case NodeKind::kReturn:
      case NodeKind::kAwait:
      case NodeKind::kYield:
      case NodeKind::kNot:
        node = node.first_child();
        break;
      default:
        return node;
    }
  }
}

Block block(BlockKind kind, Node expression, Node condition) {
  Block out;
  out.kind = kind;
  out.line = condition.line();
  out.indent = expression.indent();
  out.text = expression.one_line();
  out.condition = condition.one_line();
  out.within = true;
  return out;
}

/// The whole chain `a and b and c` for its part `a and b`.
Node whole_chain(Node node) {
  const std::string_view how = node.field(Field::kOperator).text();
  while (node.parent().is(NodeKind::kBoolean) && node.role() == Field::kLeft &&
         node.parent().field(Field::kOperator).text() == how) {
    node = node.parent();
  }
  return node;
}

/// One step inwards: records the condition and returns what it leads to; nothing if there is none.
Node step_into(Node node, int line, std::vector<Block>& out) {
  const auto parts = node.children();
  if (node.is(NodeKind::kConditional) && parts.size() == 3) {
    if (calls_on(parts[0], line)) {
      out.push_back(block(BlockKind::kIf, node, parts[1]));
      return parts[0];
    }
    if (calls_on(parts[2], line)) {
      out.push_back(block(BlockKind::kElse, node, parts[1]));
      return parts[2];
    }
    return {};
  }
  if (node.is(NodeKind::kBoolean)) {
    const Node left = node.field(Field::kLeft);
    const Node right = node.field(Field::kRight);
    if (calls_on(right, line)) {
      const bool all = node.field(Field::kOperator).text() == "and";
      out.push_back(block(all ? BlockKind::kIf : BlockKind::kElse, whole_chain(node), left));
      return right;
    }
    return left;
  }
  return {};
}

/// The expressions evaluated on this line; for a header, those it tests, iterates or enters.
std::vector<Node> expressions_of(const Code& code, std::size_t statement) {
  const Node node = code[statement].node;
  switch (node.kind()) {
    case NodeKind::kIf:
    case NodeKind::kElif:
    case NodeKind::kWhile:
      return {node.field(Field::kCondition)};
    case NodeKind::kFor:
      return {node.field(Field::kRight)};
    case NodeKind::kMatch:
      return {node.field(Field::kSubject)};
    case NodeKind::kWith: {
      std::vector<Node> out;
      for (const Node item : node.first_child().children()) {
        const Node entered = item.field(Field::kValue);
        out.push_back(entered.is(NodeKind::kAsPattern) ? entered.first_child() : entered);
      }
      return out;
    }
    default:
      return is_header(node.kind()) ? std::vector<Node>() : std::vector{node};
  }
}

}  // namespace

std::vector<Block> inline_conditions(const Code& code, std::size_t statement, int line) {
  std::vector<Block> out;
  for (const Node evaluated : expressions_of(code, statement)) {
    for (Node expression = bare(evaluated); expression;) {
      expression = bare(step_into(expression, line, out));
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace ddpdoctor::program
