// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/skipped_call.h"

#include <algorithm>
#include <vector>

#include "collector/program/flow/separation.h"

namespace ddpdoctor::program {
namespace {

constexpr PointId kUnseen = static_cast<PointId>(-1);

class Round {
 public:
  Round(const FlowGraph& graph, std::vector<PointId> start, std::vector<Node> calls)
      : graph_(graph), start_(std::move(start)), calls_(std::move(calls)) {}

  /// The points of a shortest path from the start back to it, last first; empty if there is none.
  [[nodiscard]] std::vector<PointId> back_without_call(bool by_exception) const {
    std::vector<PointId> before(graph_.points().size(), kUnseen);
    std::vector<PointId> open = start_;
    for (std::size_t i = 0; i < open.size(); ++i) {
      for (const Edge& edge : graph_.points()[open[i]].out) {
        const bool raises = edge.way == Way::kRaised && (!by_exception || starts(open[i]));
        const bool is_back = starts(edge.to);
        if (is_back && !starts(open[i]) && !raises && edge.way != Way::kNever) {
          return path_to(open[i], before);
        }
        if (is_back || raises || edge.way == Way::kNever || before[edge.to] != kUnseen ||
            makes_call(edge.to)) {
          continue;
        }
        before[edge.to] = open[i];
        open.push_back(edge.to);
      }
    }
    return {};
  }

  /// Another way out of this point leads to the call before the start.
  [[nodiscard]] bool chooses(PointId at, PointId next) const {
    const auto& out = graph_.points()[at].out;
    return std::any_of(out.begin(), out.end(),
                       [&](const Edge& edge) { return edge.to != next && leads_to_call(edge.to); });
  }

 private:
  [[nodiscard]] bool starts(PointId id) const {
    return std::find(start_.begin(), start_.end(), id) != start_.end();
  }

  [[nodiscard]] bool makes_call(PointId id) const {
    const Point& point = graph_.points()[id];
    const Node evaluated =
        point.decision == kNone ? point.node : graph_.decisions()[point.decision].condition;
    return std::any_of(calls_.begin(), calls_.end(),
                       [evaluated](Node call) { return evaluated && evaluated.holds(call); });
  }

  [[nodiscard]] bool leads_to_call(PointId from) const {
    std::vector<bool> seen(graph_.points().size());
    std::vector<PointId> open = {from};
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (makes_call(open[i])) {
        return true;
      }
      for (const Edge& edge : graph_.points()[open[i]].out) {
        if (!seen[edge.to] && !starts(edge.to) && edge.way != Way::kNever) {
          seen[edge.to] = true;
          open.push_back(edge.to);
        }
      }
    }
    return false;
  }

  [[nodiscard]] std::vector<PointId> path_to(PointId last,
                                             const std::vector<PointId>& before) const {
    std::vector<PointId> path = {last};
    while (!starts(path.back())) {
      path.push_back(before[path.back()]);
    }
    return path;
  }

  const FlowGraph& graph_;
  std::vector<PointId> start_;
  std::vector<Node> calls_;
};

}  // namespace

std::optional<int> comes_back_without(const SourceText& text, const Sources& sources, int line,
                                      std::string_view method) {
  const SourceIndex& index = index_of(text);
  if (index.empty()) {
    return std::nullopt;
  }
  const Scope& scope = index.function_at(line);
  std::vector<Node> calls;
  for (const MethodCall& one : calls_on(text, sources, scope.first_line, scope.last_line)) {
    if (one.method == method) {
      calls.push_back(one.call);
    }
  }
  const FlowGraph& graph = flow_of(text, scope).graph;
  std::vector<PointId> start = graph.points_at(line);
  if (calls.empty() || start.empty()) {
    return std::nullopt;
  }
  const Round round(graph, std::move(start), std::move(calls));
  for (const bool by_exception : {false, true}) {
    const auto path = round.back_without_call(by_exception);
    for (std::size_t i = 1; i < path.size(); ++i) {
      if (round.chooses(path[i], path[i - 1])) {
        const Point& point = graph.points()[path[i]];
        return index.statements()[point.statement].line;
      }
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::program
