// SPDX-License-Identifier: Apache-2.0
#include "collector/values/yielded.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "collector/values/from_syntax.h"

namespace ddpdoctor::values {

namespace {

using program::Field;
using program::Node;
using program::NodeKind;

constexpr int kLeaves = -1000;  // more than a function has yields

/// Counts the yields in a node; negative if something ends a loop or an iteration early. Functions
/// defined inside run for themselves.
int yields_in(Node node) {
  switch (node.kind()) {
    case NodeKind::kFunction:
    case NodeKind::kLambda:
    case NodeKind::kClass:
      return 0;
    case NodeKind::kBreak:
    case NodeKind::kContinue:
    case NodeKind::kReturn:
      return kLeaves;
    default:
      break;
  }
  // `yield from` gives any number of items.
  int count = node.is(NodeKind::kYield) ? (node.text().starts_with("yield from") ? kLeaves : 1) : 0;
  for (const Node child : node.children()) {
    count += yields_in(child);
  }
  return count;
}

/// A name in the first node is also in the second one.
bool share_a_name(Node one, Node other) {
  if (one.is(NodeKind::kName)) {
    const auto parts = other.children();
    return (other.is(NodeKind::kName) && other.text() == one.text()) ||
           std::any_of(parts.begin(), parts.end(),
                       [one](Node part) { return share_a_name(one, part); });
  }
  const auto parts = one.children();
  return std::any_of(parts.begin(), parts.end(),
                     [other](Node part) { return share_a_name(part, other); });
}

/// Each execution of these statements yields exactly once, in one of them and under no condition.
bool yields_once(const std::vector<Node>& statements) {
  int all = 0;
  bool plain = false;
  for (const Node statement : statements) {
    const int count = yields_in(statement);
    all += count;
    plain = plain || (count == 1 && statement.is(NodeKind::kExpressionStatement));
  }
  return plain && all == 1;
}

/// The statement does not change which items the loop goes over.
bool is_beside_the_loop(Node statement, Node over) {
  const Node only = statement.first_child();
  const Node bound = only.is(NodeKind::kAssignment) || only.is(NodeKind::kAugmentedAssignment)
                         ? only.field(Field::kLeft)
                         : Node();
  const bool plain = statement.is(NodeKind::kExpressionStatement) ||
                     statement.is(NodeKind::kImport) || statement.is(NodeKind::kImportFrom);
  return plain && yields_in(statement) == 0 && !(bound && share_a_name(bound, over));
}

}  // namespace

std::optional<Expression> yielded_by(Node function) {
  if (!function.is(NodeKind::kFunction) || function.text().starts_with("async")) {
    return std::nullopt;
  }
  const std::vector<Node> statements = function.field(Field::kBody).children();
  const auto loop = std::find_if(statements.begin(), statements.end(),
                                 [](Node one) { return one.is(NodeKind::kFor); });
  if (loop == statements.end() || loop->field(Field::kAlternative) ||
      loop->text().starts_with("async") || !yields_once(loop->field(Field::kBody).children())) {
    return std::nullopt;
  }
  const Node over = loop->field(Field::kRight);
  if (!std::all_of(statements.begin(), statements.end(),
                   [&](Node one) { return one == *loop || is_beside_the_loop(one, over); })) {
    return std::nullopt;
  }
  Expression out{.kind = Expression::Kind::kYielded, .source = over.one_line()};
  out.parts = {expression_of(over)};
  return out;
}

}  // namespace ddpdoctor::values
