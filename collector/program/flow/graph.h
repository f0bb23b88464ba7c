// SPDX-License-Identifier: Apache-2.0
// The control-flow graph of one scope: a function, a class's body or the module. Every decision of
// a statement is a point of its own, also those inside expressions (`a and f()`, `f() if a else b`,
// comprehensions). An exception is followed where the scope itself catches it or raises it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collector/program/syntax/decisions.h"
#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::program {

/// How a point is left.
enum class Way : std::uint8_t {
  kNext,
  kTrue,       // the test holds, the case fits, the exception is caught here
  kFalse,      // it does not
  kItem,       // there is another item
  kExhausted,  // there is none
  kRaised,     // by an exception that this scope catches
  kNever,      // out of a loop that has no way out: only so that every point has an end
};

using PointId = std::uint32_t;

struct Edge {
  PointId to = 0;
  Way way = Way::kNext;
};

/// One step of a scope: a statement, a call inside one, or a decision.
struct Point {
  Node node;                      // what is evaluated
  std::size_t statement = kNone;  // the statement that holds it
  std::size_t decision = kNone;   // index into FlowGraph::decisions(); of a test, case, loop
  bool calls = false;             // a frame can be here: it makes a call
  std::vector<Edge> out;
  std::vector<PointId> in;
};

class FlowGraph {
 public:
  FlowGraph(const SourceIndex& index, const Scope& scope);

  static constexpr PointId kEntry = 0;
  static constexpr PointId kExit = 1;  // returned, raised or fell off the end

  [[nodiscard]] const SourceIndex& index() const {
    return *index_;
  }
  [[nodiscard]] std::span<const Point> points() const {
    return points_;
  }
  [[nodiscard]] std::span<const Decision> decisions() const {
    return decisions_;
  }
  /// Where a frame at this line may be: its calls, else all that is evaluated there.
  [[nodiscard]] std::vector<PointId> points_at(int line) const;
  /// The point of a decision, by what is decided.
  [[nodiscard]] std::optional<PointId> point_of(Node owner, DecisionKind kind) const;

 private:
  friend class GraphBuilder;
  const SourceIndex* index_;
  std::vector<Point> points_;
  std::vector<Decision> decisions_;
};

}  // namespace ddpdoctor::program
