// SPDX-License-Identifier: Apache-2.0
// Control dependence: which decisions, taken which way, lead to a point.
#pragma once

#include <vector>

#include "collector/program/flow/graph.h"

namespace ddpdoctor::program {

/// A point is reached because `decision` was left by `way`.
struct Dependency {
  PointId decision = 0;
  Way way = Way::kNext;
  int distance = 0;  // 1: nothing decides between them

  friend bool operator==(const Dependency&, const Dependency&) = default;
};

class ControlDependence {
 public:
  explicit ControlDependence(const FlowGraph& graph);

  /// All that any of these points depends on, through other decisions too; the nearest first.
  [[nodiscard]] std::vector<Dependency> of(const std::vector<PointId>& points) const;

  /// Every way from one of them to the end passes the point.
  [[nodiscard]] bool postdominates(PointId later, PointId earlier) const;

 private:
  std::vector<PointId> after_;  // immediate post-dominator; the exit is its own
  std::vector<std::vector<Dependency>> direct_;
};

}  // namespace ddpdoctor::program
