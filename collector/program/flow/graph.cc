// SPDX-License-Identifier: Apache-2.0
#include "collector/program/flow/graph.h"

#include <algorithm>

#include "collector/program/flow/builder.h"

namespace ddpdoctor::program {
namespace {

/// A function rarely has more; beyond this, every point of an endless loop gets an edge to the
/// exit.
constexpr int kMaxEndlessLoops = 100;

/// The points from which the exit can be reached.
std::vector<bool> with_an_end(const std::vector<Point>& points) {
  std::vector<bool> ends(points.size(), false);
  std::vector<PointId> open = {FlowGraph::kExit};
  ends[FlowGraph::kExit] = true;
  while (!open.empty()) {
    const PointId at = open.back();
    open.pop_back();
    for (const PointId before : points[at].in) {
      if (!ends[before]) {
        ends[before] = true;
        open.push_back(before);
      }
    }
  }
  return ends;
}

}  // namespace

FlowGraph::FlowGraph(const SourceIndex& index, const Scope& scope) : index_(&index) {
  GraphBuilder(*this, scope).build();
  // `while True:` without a break: its first point gets an edge to the exit that is never taken.
  std::vector<bool> ends = with_an_end(points_);
  int endless = 0;
  for (PointId i = 0; i < points_.size(); ++i) {
    if (!ends[i]) {
      points_[i].out.push_back({.to = kExit, .way = Way::kNever});
      points_[kExit].in.push_back(i);
      if (++endless < kMaxEndlessLoops) {
        ends = with_an_end(points_);
      }
    }
  }
}

std::vector<PointId> FlowGraph::points_at(int line) const {
  std::vector<PointId> calls;
  std::vector<PointId> all;
  for (PointId i = 2; i < points_.size(); ++i) {
    const Point& point = points_[i];
    if (line < point.node.line() || line > point.node.last_line()) {
      continue;
    }
    all.push_back(i);
    if (point.calls) {
      calls.push_back(i);
    }
  }
  return calls.empty() ? all : calls;
}

std::optional<PointId> FlowGraph::point_of(Node owner, DecisionKind kind) const {
  for (PointId i = 0; i < points_.size(); ++i) {
    const std::size_t decision = points_[i].decision;
    if (decision != kNone && decisions_[decision].kind == kind &&
        decisions_[decision].owner == owner) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::program
