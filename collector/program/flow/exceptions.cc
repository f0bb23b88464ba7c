// SPDX-License-Identifier: Apache-2.0
// try, except, finally, and the jumps that leave them.
#include <utility>

#include "collector/program/flow/builder.h"

namespace ddpdoctor::program {

namespace {

std::size_t number(auto jump) {
  return static_cast<std::size_t>(jump);
}

/// `except:`, `except Exception`, `except BaseException`: later clauses are not considered.
bool catches_all(Node caught) {
  return !caught || caught.text() == "Exception" || caught.text() == "BaseException";
}

}  // namespace

/// Leads to the innermost statement that ends the jump, or through a finally on its way.
void GraphBuilder::jump(Jump kind, Frontier from) {
  for (auto around = around_.rbegin(); around != around_.rend(); ++around) {
    const bool ends = around->is_loop
                          ? kind == Jump::kBreak || kind == Jump::kContinue
                          : around->finally || (around->catches && kind == Jump::kRaise);
    if (ends) {
      Frontier& jumps = around->jumps[number(kind)];
      jumps = joined(std::move(jumps), from);
      return;
    }
  }
  connect(from, FlowGraph::kExit);
}

void GraphBuilder::may_raise(PointId point) {
  for (auto around = around_.rbegin(); around != around_.rend(); ++around) {
    if (!around->is_loop && (around->catches || around->finally)) {
      around->jumps[number(Jump::kRaise)].push_back({.from = point, .way = Way::kRaised});
      return;
    }
  }
}

Frontier GraphBuilder::try_statement(Node node, Frontier in) {
  const Node last = child_of(node, NodeKind::kFinally);
  if (last) {
    around_.push_back({.finally = true});
  }
  around_.push_back({.catches = static_cast<bool>(child_of(node, NodeKind::kExcept))});
  Frontier out = suite(node.field(Field::kBody), std::move(in));
  Around inner = std::move(around_.back());
  around_.pop_back();
  if (const Node otherwise = child_of(node, NodeKind::kElse)) {
    out = suite(otherwise.field(Field::kBody), std::move(out));
  }
  out = joined(std::move(out), handlers(node, std::move(inner.jumps[number(Jump::kRaise)])));
  if (!last) {
    return out;
  }
  Around around = std::move(around_.back());
  around_.pop_back();
  return finally(last, std::move(around), std::move(out));
}

Frontier GraphBuilder::handlers(Node node, Frontier raised) {
  Frontier out;
  for (Node clause = node.first_child(); clause; clause = clause.next_sibling()) {
    if (!clause.is(NodeKind::kExcept) || raised.empty()) {
      continue;
    }
    statement_ = index_.statement_of(clause);
    Node caught = clause.first_child();
    caught = caught.is(NodeKind::kAsPattern) ? caught.first_child() : caught;
    caught = caught.is(NodeKind::kBlock) ? Node() : caught;
    const PointId head = decide(DecisionKind::kExcept, clause, caught, std::move(raised));
    raised = catches_all(caught) ? Frontier() : leaving(head, Way::kFalse);
    out = joined(std::move(out),
                 suite(child_of(clause, NodeKind::kBlock), leaving(head, Way::kTrue)));
  }
  if (!raised.empty()) {
    jump(Jump::kRaise, std::move(raised));
  }
  return out;
}

/// Every path out of the try runs its finally; a jump continues afterwards.
Frontier GraphBuilder::finally(Node clause, Around around, Frontier in) {
  const bool falls_through = !in.empty();
  for (const Frontier& jumps : around.jumps) {
    in = joined(std::move(in), jumps);
  }
  statement_ = index_.statement_of(clause);
  const Frontier out = suite(child_of(clause, NodeKind::kBlock), std::move(in));
  for (const Jump kind : {Jump::kBreak, Jump::kContinue, Jump::kReturn, Jump::kRaise}) {
    if (!around.jumps[number(kind)].empty()) {
      Frontier onward = out;
      for (Dangling& edge : onward) {
        edge.way = kind == Jump::kRaise ? Way::kRaised : edge.way;
      }
      jump(kind, std::move(onward));
    }
  }
  return falls_through ? out : Frontier();
}

}  // namespace ddpdoctor::program
