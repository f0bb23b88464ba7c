// SPDX-License-Identifier: Apache-2.0
// Decisions inside expressions. An expression without a decision is one point.
#include <algorithm>
#include <utility>

#include "collector/program/flow/builder.h"

namespace ddpdoctor::program {
namespace {

bool is_comprehension(NodeKind kind) {
  return kind == NodeKind::kListComprehension || kind == NodeKind::kSetComprehension ||
         kind == NodeKind::kDictionaryComprehension || kind == NodeKind::kGenerator;
}

bool is_own_code(NodeKind kind) {
  return kind != NodeKind::kLambda && kind != NodeKind::kBlock;
}

template <class Wanted>
bool any_inside(Node node, const Wanted& wanted) {
  if (!is_own_code(node.kind())) {
    return false;
  }
  if (wanted(node)) {
    return true;
  }
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    if (any_inside(child, wanted)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool has_call(Node expression) {
  return any_inside(expression, [](Node node) {
    return node.is(NodeKind::kCall) || node.is(NodeKind::kAwait) || node.is(NodeKind::kSubscript) ||
           node.is(NodeKind::kAttribute) || node.is(NodeKind::kBinary) ||
           node.is(NodeKind::kComparison) || node.is(NodeKind::kYield);
  });
}

bool chooses(Node expression) {
  return any_inside(expression, [](Node node) {
    return node.is(NodeKind::kBoolean) || node.is(NodeKind::kConditional) ||
           is_comprehension(node.kind());
  });
}

/// A whole statement or condition: one point, or the points of its decisions and calls plus one for
/// itself.
Frontier GraphBuilder::evaluate(Node node, Frontier in) {
  if (!node) {
    return in;
  }
  if (!chooses(node)) {
    return leaving(add(node, std::move(in), has_call(node)));
  }
  in = expression(node, std::move(in));
  return leaving(add(node, std::move(in), false));
}

Frontier GraphBuilder::expression(Node node, Frontier in) {
  if (!is_own_code(node.kind())) {
    return in;
  }
  if (!chooses(node)) {
    return has_call(node) ? leaving(add(node, std::move(in), true)) : in;
  }
  if (is_comprehension(node.kind())) {
    return comprehension(node, std::move(in));
  }
  if (node.is(NodeKind::kBoolean)) {
    const bool all = node.field(Field::kOperator).text() == "and";
    in = expression(node.field(Field::kLeft), std::move(in));
    const PointId head = decide(all ? DecisionKind::kAnd : DecisionKind::kOr, node,
                                node.field(Field::kLeft), std::move(in));
    Frontier rest =
        expression(node.field(Field::kRight), leaving(head, all ? Way::kTrue : Way::kFalse));
    return joined(std::move(rest), leaving(head, all ? Way::kFalse : Way::kTrue));
  }
  const auto parts = node.children();
  if (node.is(NodeKind::kConditional) && parts.size() == 3) {
    in = expression(parts[1], std::move(in));
    const PointId head = decide(DecisionKind::kTernary, node, parts[1], std::move(in));
    Frontier yes = expression(parts[0], leaving(head, Way::kTrue));
    return joined(std::move(yes), expression(parts[2], leaving(head, Way::kFalse)));
  }
  for (const Node child : parts) {
    in = expression(child, std::move(in));
  }
  return node.is(NodeKind::kCall) ? leaving(add(node, std::move(in), true)) : in;
}

/// The clauses lead to the comprehension's value, and the value leads back to the innermost loop.
Frontier GraphBuilder::comprehension(Node node, Frontier in) {
  Frontier done;
  std::optional<PointId> loop;
  for (const Node clause : node.children()) {
    if (clause.is(NodeKind::kForIn)) {
      const Node items = clause.field(Field::kRight);
      in = expression(items, std::move(in));
      const PointId head = decide(DecisionKind::kIterate, clause, items, std::move(in));
      const Frontier exhausted = leaving(head, Way::kExhausted);
      if (loop) {
        connect(exhausted, *loop);
      } else {
        done = exhausted;
      }
      loop = head;
      in = leaving(head, Way::kItem);
    } else if (clause.is(NodeKind::kIfClause) && loop) {
      auto [yes, no] = test(DecisionKind::kFilter, clause, clause.first_child(), std::move(in));
      connect(no, *loop);
      in = std::move(yes);
    }
  }
  if (!loop) {
    return in;
  }
  const Node value = node.field(Field::kBody);
  in = expression(value, std::move(in));
  connect(in, *loop);
  return done;
}

std::pair<Frontier, Frontier> GraphBuilder::test(DecisionKind kind, Node owner, Node condition,
                                                 Frontier in, Node subject) {
  if (condition && (has_call(condition) || chooses(condition))) {
    in = chooses(condition) ? expression(condition, std::move(in))
                            : leaving(add(condition, std::move(in), true));
  }
  const PointId head = decide(kind, owner, condition, std::move(in), subject);
  return {leaving(head, Way::kTrue),
          is_always_true(condition) ? Frontier() : leaving(head, Way::kFalse)};
}

}  // namespace ddpdoctor::program
