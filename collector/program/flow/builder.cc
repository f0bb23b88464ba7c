// SPDX-License-Identifier: Apache-2.0
#include "collector/program/flow/builder.h"

#include <utility>

namespace ddpdoctor::program {

Frontier joined(Frontier a, const Frontier& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Frontier leaving(PointId point, Way way) {
  return {{.from = point, .way = way}};
}

bool is_always_true(Node condition) {
  const Node bare = without_parentheses(condition);
  return bare.is(NodeKind::kTrue) || (bare.is(NodeKind::kInteger) && bare.text() != "0");
}

Node child_of(Node node, NodeKind kind) {
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    if (child.is(kind)) {
      return child;
    }
  }
  return {};
}

GraphBuilder::GraphBuilder(FlowGraph& graph, const Scope& scope)
    : graph_(graph), index_(graph.index()), scope_(scope) {}

void GraphBuilder::build() {
  graph_.points_.resize(2);
  Frontier end = leaving(FlowGraph::kEntry);
  if (scope_.kind == ScopeKind::kLambda) {
    end = evaluate(scope_.body, std::move(end));
  } else if (scope_.body) {
    end = suite(scope_.body, std::move(end));
  }
  connect(end, FlowGraph::kExit);
}

PointId GraphBuilder::add(Node node, Frontier in, bool calls) {
  const auto id = static_cast<PointId>(graph_.points_.size());
  graph_.points_.push_back({.node = node,
                            .statement = statement_,
                            .decision = kNone,
                            .calls = calls,
                            .out = {},
                            .in = {}});
  connect(in, id);
  if (calls) {
    may_raise(id);
  }
  return id;
}

PointId GraphBuilder::decide(DecisionKind kind, Node owner, Node condition, Frontier in,
                             Node subject) {
  const PointId id = add(condition ? condition : owner, std::move(in), false);
  graph_.points_[id].decision = graph_.decisions_.size();
  graph_.decisions_.push_back({.kind = kind,
                               .condition = condition,
                               .subject = subject,
                               .owner = owner,
                               .line = owner.line(),
                               .text = condition.one_line(),
                               .statement = statement_});
  return id;
}

void GraphBuilder::connect(const Frontier& from, PointId to) {
  for (const Dangling& edge : from) {
    graph_.points_[edge.from].out.push_back({.to = to, .way = edge.way});
    graph_.points_[to].in.push_back(edge.from);
  }
}

Frontier GraphBuilder::suite(Node block, Frontier in) {
  for (Node child = block.first_child(); child; child = child.next_sibling()) {
    in = statement(child, std::move(in));
  }
  return in;
}

Frontier GraphBuilder::statement(Node node, Frontier in) {
  statement_ = index_.statement_of(node);
  switch (node.kind()) {
    case NodeKind::kIf:
      return if_statement(node, std::move(in));
    case NodeKind::kWhile:
      return while_loop(node, std::move(in));
    case NodeKind::kFor:
      return for_loop(node, std::move(in));
    case NodeKind::kMatch:
      return match(node, std::move(in));
    case NodeKind::kWith:
      return with(node, std::move(in));
    case NodeKind::kTry:
      return try_statement(node, std::move(in));
    case NodeKind::kAssert:
      return assertion(node, std::move(in));
    case NodeKind::kFunction:
    case NodeKind::kClass:
    case NodeKind::kDecorated:
      return definition(node, std::move(in));
    case NodeKind::kBlock:
    case NodeKind::kError:
      return suite(node, std::move(in));
    default:
      return simple(node, std::move(in));
  }
}

Frontier GraphBuilder::simple(Node node, Frontier in) {
  Frontier out = evaluate(node, std::move(in));
  switch (node.kind()) {
    case NodeKind::kReturn:
      jump(Jump::kReturn, std::move(out));
      return {};
    case NodeKind::kRaise:
      jump(Jump::kRaise, std::move(out));
      return {};
    case NodeKind::kBreak:
      jump(Jump::kBreak, std::move(out));
      return {};
    case NodeKind::kContinue:
      jump(Jump::kContinue, std::move(out));
      return {};
    default:
      return out;
  }
}

Frontier GraphBuilder::if_statement(Node node, Frontier in) {
  auto [yes, no] = test(DecisionKind::kIf, node, node.field(Field::kCondition), std::move(in));
  Frontier out = suite(node.field(Field::kConsequence), std::move(yes));
  for (const Node clause : node.fields(Field::kAlternative)) {
    statement_ = index_.statement_of(clause);
    if (clause.is(NodeKind::kElif)) {
      auto [next_yes, next_no] =
          test(DecisionKind::kElif, clause, clause.field(Field::kCondition), std::move(no));
      out = joined(std::move(out), suite(clause.field(Field::kConsequence), std::move(next_yes)));
      no = std::move(next_no);
    } else {
      no = suite(clause.field(Field::kBody), std::move(no));
    }
  }
  return joined(std::move(out), no);
}

Frontier GraphBuilder::while_loop(Node node, Frontier in) {
  const Node condition = node.field(Field::kCondition);
  const auto head = static_cast<PointId>(graph_.points_.size());
  auto [yes, no] = test(DecisionKind::kWhile, node, condition, std::move(in));
  around_.push_back({.is_loop = true});
  Frontier back = suite(node.field(Field::kBody), std::move(yes));
  const Around loop = std::move(around_.back());
  around_.pop_back();
  connect(back, head);
  connect(loop.jumps[static_cast<std::size_t>(Jump::kContinue)], head);
  if (const Node otherwise = child_of(node, NodeKind::kElse)) {
    no = suite(otherwise.field(Field::kBody), std::move(no));
  }
  return joined(std::move(no), loop.jumps[static_cast<std::size_t>(Jump::kBreak)]);
}

Frontier GraphBuilder::for_loop(Node node, Frontier in) {
  const Node items = node.field(Field::kRight);
  if (has_call(items) || chooses(items)) {
    in = evaluate(items, std::move(in));
  }
  const PointId head = decide(DecisionKind::kFor, node, items, std::move(in));
  graph_.points_[head].calls = true;  // asking the iterator for an item is a call
  may_raise(head);
  around_.push_back({.is_loop = true});
  Frontier back = suite(node.field(Field::kBody), leaving(head, Way::kItem));
  const Around loop = std::move(around_.back());
  around_.pop_back();
  connect(back, head);
  connect(loop.jumps[static_cast<std::size_t>(Jump::kContinue)], head);
  Frontier done = leaving(head, Way::kExhausted);
  if (const Node otherwise = child_of(node, NodeKind::kElse)) {
    done = suite(otherwise.field(Field::kBody), std::move(done));
  }
  return joined(std::move(done), loop.jumps[static_cast<std::size_t>(Jump::kBreak)]);
}

Frontier GraphBuilder::match(Node node, Frontier in) {
  const Node subject = node.field(Field::kSubject);
  Frontier next = evaluate(subject, std::move(in));
  Frontier out;
  const Node body = node.field(Field::kBody);
  for (Node one = body.first_child(); one; one = one.next_sibling()) {
    if (!one.is(NodeKind::kCase)) {
      continue;
    }
    statement_ = index_.statement_of(one);
    const Node pattern = child_of(one, NodeKind::kCasePattern);
    const Node guard = one.field(Field::kGuard);
    const PointId head = decide(DecisionKind::kCase, one, pattern, std::move(next), subject);
    Frontier fits = leaving(head, Way::kTrue);
    const Node inner = pattern.first_child();
    const bool any =
        pattern.text() == "_" || (inner.is(NodeKind::kDottedName) && inner.children().size() == 1);
    next = any ? Frontier() : leaving(head, Way::kFalse);
    if (guard) {
      auto [yes, no] = test(DecisionKind::kGuard, one, guard.first_child(), std::move(fits));
      fits = std::move(yes);
      next = joined(std::move(next), no);
    }
    out = joined(std::move(out), suite(one.field(Field::kConsequence), std::move(fits)));
  }
  return joined(std::move(out), next);
}

Frontier GraphBuilder::with(Node node, Frontier in) {
  const Node items = child_of(node, NodeKind::kWithItems);
  in = evaluate(items, std::move(in));
  bool suppresses = false;
  for (const Node item : items.children()) {
    const Node call = item.field(Field::kValue);
    const Node callee = call.field(Field::kFunction);
    const Node name = callee.is(NodeKind::kAttribute) ? callee.field(Field::kAttribute) : callee;
    suppresses = suppresses || name.text() == "suppress";
  }
  around_.push_back({.catches = suppresses});
  Frontier out = suite(node.field(Field::kBody), std::move(in));
  const Around around = std::move(around_.back());
  around_.pop_back();
  return joined(std::move(out), around.jumps[static_cast<std::size_t>(Jump::kRaise)]);
}

/// A definition evaluates its decorators, defaults and bases here, but not its body.
Frontier GraphBuilder::definition(Node node, Frontier in) {
  const Node defined = node.is(NodeKind::kDecorated) ? node.field(Field::kDefinition) : node;
  for (const Node child : node.children()) {
    if (child.is(NodeKind::kDecorator)) {
      statement_ = index_.statement_of(child);
      in = evaluate(child, std::move(in));
    }
  }
  statement_ = index_.statement_of(defined);
  // A class body runs at its definition: a frame at the class's line may be inside it.
  const bool is_class = defined.is(NodeKind::kClass);
  return leaving(add(defined.field(Field::kName), std::move(in), is_class));
}

Frontier GraphBuilder::assertion(Node node, Frontier in) {
  auto [holds, fails] = test(DecisionKind::kAssert, node, node.first_child(), std::move(in));
  jump(Jump::kRaise, std::move(fails));
  return std::move(holds);
}

}  // namespace ddpdoctor::program
