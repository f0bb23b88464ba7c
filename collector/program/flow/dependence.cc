// SPDX-License-Identifier: Apache-2.0
// Post-dominators after Cooper, Harvey and Kennedy ("A simple, fast dominance algorithm"); from
// them, control dependence after Ferrante, Ottenstein and Warren.
#include "collector/program/flow/dependence.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace ddpdoctor::program {
namespace {

constexpr PointId kUnknown = std::numeric_limits<PointId>::max();

/// The points in postorder of a walk against the edges from the exit.
std::vector<PointId> postorder_from_exit(const FlowGraph& graph) {
  const auto points = graph.points();
  std::vector<PointId> out;
  std::vector<bool> seen(points.size(), false);
  std::vector<std::pair<PointId, std::size_t>> open = {{FlowGraph::kExit, 0}};
  seen[FlowGraph::kExit] = true;
  while (!open.empty()) {
    auto& [at, next] = open.back();
    if (next < points[at].in.size()) {
      const PointId before = points[at].in[next++];
      if (!seen[before]) {
        seen[before] = true;
        open.emplace_back(before, 0);
      }
    } else {
      out.push_back(at);
      open.pop_back();
    }
  }
  return out;
}

std::vector<PointId> immediate_postdominators(const FlowGraph& graph) {
  const auto points = graph.points();
  const std::vector<PointId> order = postorder_from_exit(graph);
  std::vector<std::size_t> number(points.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    number[order[i]] = i;
  }
  std::vector<PointId> after(points.size(), kUnknown);
  after[FlowGraph::kExit] = FlowGraph::kExit;
  const auto meet = [&](PointId a, PointId b) {
    while (a != b) {
      while (number[a] < number[b]) {
        a = after[a];
      }
      while (number[b] < number[a]) {
        b = after[b];
      }
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      if (*at == FlowGraph::kExit) {
        continue;
      }
      PointId common = kUnknown;
      for (const Edge& edge : points[*at].out) {
        if (after[edge.to] != kUnknown) {
          common = common == kUnknown ? edge.to : meet(common, edge.to);
        }
      }
      if (common != after[*at]) {
        after[*at] = common;
        changed = true;
      }
    }
  }
  return after;
}

}  // namespace

ControlDependence::ControlDependence(const FlowGraph& graph)
    : after_(immediate_postdominators(graph)), direct_(graph.points().size()) {
  const auto points = graph.points();
  for (PointId at = 0; at < points.size(); ++at) {
    if (points[at].out.size() < 2 || after_[at] == kUnknown) {
      continue;
    }
    for (const Edge& edge : points[at].out) {
      for (PointId run = edge.to; run != after_[at] && run != kUnknown; run = after_[run]) {
        direct_[run].push_back({.decision = at, .way = edge.way, .distance = 1});
        if (run == FlowGraph::kExit) {
          break;
        }
      }
    }
  }
}

bool ControlDependence::postdominates(PointId later, PointId earlier) const {
  for (PointId run = earlier; run != kUnknown; run = after_[run]) {
    if (run == later) {
      return true;
    }
    if (run == FlowGraph::kExit) {
      break;
    }
  }
  return false;
}

std::vector<Dependency> ControlDependence::of(const std::vector<PointId>& points) const {
  std::vector<Dependency> out;
  std::map<std::pair<PointId, Way>, bool> known;
  std::vector<PointId> level = points;
  std::vector<bool> visited(direct_.size(), false);
  for (int distance = 1; !level.empty(); ++distance) {
    std::vector<PointId> next;
    for (const PointId point : level) {
      for (const Dependency& one : direct_[point]) {
        if (one.way != Way::kNever && known.try_emplace({one.decision, one.way}, true).second) {
          out.push_back({.decision = one.decision, .way = one.way, .distance = distance});
        }
        if (!visited[one.decision]) {
          visited[one.decision] = true;
          next.push_back(one.decision);
        }
      }
    }
    level = std::move(next);
  }
  return out;
}

}  // namespace ddpdoctor::program
