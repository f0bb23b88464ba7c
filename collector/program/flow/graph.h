// SPDX-License-Identifier: Apache-2.0
// The control-flow graph of one scope: a function, a class body or the module. Each decision of a
// statement is a point of its own, including decisions inside expressions (`a and f()`, `f() if a
// else b`, comprehensions). Exception edges exist only where the scope itself catches or raises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collector/program/syntax/decisions.h"
#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::program {

/// Why control leaves a point along an edge.
enum class Way : std::uint8_t {
  kNext,
  kTrue,       // the test is true, the case matches, or the exception is caught here
  kFalse,      // the opposite of kTrue
  kItem,       // there is another item
  kExhausted,  // there is none
  kRaised,     // by an exception that this scope catches
  kNever,      // out of a loop that never ends; exists only so that every point reaches the exit
};

using PointId = std::uint32_t;

struct Edge {
  PointId to = 0;
  Way way = Way::kNext;
};

/// One step of a scope: a statement, a call inside one, or a decision.
struct Point {
  Node node;                      // what is evaluated
  std::size_t statement = kNone;  // the statement that contains it
  std::size_t decision = kNone;   // index into FlowGraph::decisions(); for a test, case or loop
  bool calls = false;             // it makes a call, so a frame can be suspended here
  std::vector<Edge> out;
  std::vector<PointId> in;
};

class FlowGraph {
 public:
  FlowGraph(const SourceIndex& index, const Scope& scope);

  static constexpr PointId kEntry = 0;
  // After a return, an uncaught exception or the last statement.
  static constexpr PointId kExit = 1;

  [[nodiscard]] const SourceIndex& index() const {
    return *index_;
  }
  [[nodiscard]] std::span<const Point> points() const {
    return points_;
  }
  [[nodiscard]] std::span<const Decision> decisions() const {
    return decisions_;
  }
  /// The points where a frame at this line may be: its calls, or everything evaluated there if it
  /// has none.
  [[nodiscard]] std::vector<PointId> points_at(int line) const;
  /// The point of a decision, by its owner and kind.
  [[nodiscard]] std::optional<PointId> point_of(Node owner, DecisionKind kind) const;

 private:
  friend class GraphBuilder;
  const SourceIndex* index_;
  std::vector<Point> points_;
  std::vector<Decision> decisions_;
};

}  // namespace ddpdoctor::program
