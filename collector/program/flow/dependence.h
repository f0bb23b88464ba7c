// SPDX-License-Identifier: Apache-2.0
// Control dependence: the decisions that lead to a point, and how each was taken.
#pragma once

#include <vector>

#include "collector/program/flow/graph.h"

namespace ddpdoctor::program {

/// A point is reached because `decision` was left by the edge `way`.
struct Dependency {
  PointId decision = 0;
  Way way = Way::kNext;
  int distance = 0;  // 1 = no other decision lies between them

  friend bool operator==(const Dependency&, const Dependency&) = default;
};

class ControlDependence {
 public:
  explicit ControlDependence(const FlowGraph& graph);

  /// Everything that any of these points depends on, also indirectly; the nearest first.
  [[nodiscard]] std::vector<Dependency> of(const std::vector<PointId>& points) const;

  /// Every path from `earlier` to the exit passes through `later`.
  [[nodiscard]] bool postdominates(PointId later, PointId earlier) const;

 private:
  std::vector<PointId> after_;  // immediate post-dominator; that of the exit is the exit
  std::vector<std::vector<Dependency>> direct_;
};

}  // namespace ddpdoctor::program
