// SPDX-License-Identifier: Apache-2.0
// Builds a FlowGraph suite by suite. The edges that have no target at the end of a piece are its
// frontier; they lead to the next piece.
#pragma once

#include <string_view>
#include <vector>

#include "collector/program/flow/graph.h"

namespace ddpdoctor::program {

/// An edge that has no target yet.
struct Dangling {
  PointId from = 0;
  Way way = Way::kNext;
};
using Frontier = std::vector<Dangling>;

class GraphBuilder {
 public:
  GraphBuilder(FlowGraph& graph, const Scope& scope);
  void build();

 private:
  enum class Jump : std::uint8_t { kBreak, kContinue, kReturn, kRaise };

  /// A loop, or a try with its clauses, that a jump leaves on its way.
  struct Around {
    bool is_loop = false;
    Frontier jumps[4] = {};  // jumps that end here or wait for its finally, by Jump
    bool catches = false;    // exceptions inside go to jumps[kRaise]
    bool finally = false;    // true: all jumps go to its finally
  };

  // builder.cc: suites and statements
  Frontier suite(Node block, Frontier in);
  Frontier statement(Node node, Frontier in);
  Frontier simple(Node node, Frontier in);
  Frontier if_statement(Node node, Frontier in);
  Frontier while_loop(Node node, Frontier in);
  Frontier for_loop(Node node, Frontier in);
  Frontier match(Node node, Frontier in);
  Frontier with(Node node, Frontier in);
  Frontier definition(Node node, Frontier in);
  Frontier assertion(Node node, Frontier in);

  // exceptions.cc
  Frontier try_statement(Node node, Frontier in);
  Frontier handlers(Node node, Frontier raised);
  Frontier finally(Node clause, Around around, Frontier in);
  void jump(Jump kind, Frontier from);
  void may_raise(PointId point);

  // expressions.cc
  Frontier expression(Node node, Frontier in);
  Frontier evaluate(Node node, Frontier in);
  Frontier comprehension(Node node, Frontier in);
  /// Returns the frontiers for a true and for a false test.
  std::pair<Frontier, Frontier> test(DecisionKind kind, Node owner, Node condition, Frontier in,
                                     Node subject = {});

  PointId add(Node node, Frontier in, bool calls);
  PointId decide(DecisionKind kind, Node owner, Node condition, Frontier in, Node subject = {});
  void connect(const Frontier& from, PointId to);

  FlowGraph& graph_;
  const SourceIndex& index_;
  Scope scope_;
  std::vector<Around> around_;
  std::size_t statement_ = kNone;
};

Frontier joined(Frontier a, const Frontier& b);
Frontier leaving(PointId point, Way way = Way::kNext);
/// A constant that is always true: `True`, `1`.
bool is_always_true(Node condition);
/// The expression contains a decision or a comprehension.
bool chooses(Node expression);
bool has_call(Node expression);
Node child_of(Node node, NodeKind kind);

}  // namespace ddpdoctor::program
