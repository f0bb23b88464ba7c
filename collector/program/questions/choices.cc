// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/choices.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "collector/program/questions/code.h"

namespace ddpdoctor::program {
namespace {

constexpr std::size_t kMostPoints = 6000;  // points of one function
constexpr int kNotBehind = std::numeric_limits<int>::max();

bool leaves_by_raise(const Point& point) {
  return point.node.is(NodeKind::kRaise) && point.out.size() == 1 &&
         point.out.front().to == FlowGraph::kExit;
}

class Reader {
 public:
  Reader(const FlowGraph& graph, int line) : graph_(graph), line_(line) {
    if (line > 0) {
      here_ = graph.points_at(line);
    }
    for (const Point& point : points()) {
      if (point.node.is(NodeKind::kCall)) {
        own_points_.insert(point.node.id());
      }
    }
    measure();
  }

  Behind read() {
    Behind out;
    add_calls(out);
    for (const PointId at : here_) {
      out.in_loop = out.in_loop || is_in_loop(at);
    }
    for (PointId at = 0; at < points().size(); ++at) {
      if (distance_[at] != kNotBehind) {
        add_choice(at, out);
      }
    }
    return out;
  }

 private:
  [[nodiscard]] std::span<const Point> points() const {
    return graph_.points();
  }

  /// Measures the steps back from the line; for line 0, from the end of the function.
  void measure() {
    distance_.assign(points().size(), line_ > 0 ? kNotBehind : 0);
    std::vector<PointId> level = here_;
    for (const PointId at : level) {
      distance_[at] = 0;
    }
    for (int steps = 1; !level.empty(); ++steps) {
      std::vector<PointId> next;
      for (const PointId at : level) {
        for (const PointId before : points()[at].in) {
          if (distance_[before] == kNotBehind) {
            distance_[before] = steps;
            next.push_back(before);
          }
        }
      }
      level = std::move(next);
    }
  }

  /// Points that can be reached from `open` without passing `not_through` (again).
  [[nodiscard]] std::vector<bool> reached(std::vector<PointId> open, PointId not_through) const {
    std::vector<bool> seen(points().size(), false);
    for (const PointId at : open) {
      seen[at] = at != not_through;
    }
    std::erase(open, not_through);
    while (!open.empty()) {
      const Point& point = points()[open.back()];
      open.pop_back();
      if (leaves_by_raise(point)) {
        continue;
      }
      for (const Edge& edge : point.out) {
        if (edge.way != Way::kNever && edge.to != not_through && !seen[edge.to]) {
          seen[edge.to] = true;
          open.push_back(edge.to);
        }
      }
    }
    return seen;
  }

  [[nodiscard]] bool is_in_loop(PointId at) const {
    std::vector<PointId> next;
    for (const Edge& edge : points()[at].out) {
      next.push_back(edge.to);
    }
    return reached(std::move(next), FlowGraph::kEntry)[at];
  }

  [[nodiscard]] std::vector<PointId> targets(PointId at, bool taken) const {
    std::vector<PointId> out;
    for (const Edge& edge : points()[at].out) {
      const bool takes =
          edge.way == Way::kTrue || edge.way == Way::kItem || edge.way == Way::kRaised;
      if (takes == taken && edge.way != Way::kNever) {
        out.push_back(edge.to);
      }
    }
    return out;
  }

  /// Calls at points that may have been passed and are in `one` but not in `other`.
  [[nodiscard]] std::vector<Node> calls_of(const std::vector<bool>& one,
                                           const std::vector<bool>& other) const {
    std::map<std::uint32_t, Node> found;
    for (PointId at = 0; at < points().size(); ++at) {
      if (one[at] && !other[at] && distance_[at] != kNotBehind) {
        add_calls_in(at, found);
      }
    }
    return in_order(found);
  }

  /// Omits calls that are points of their own: they may be passed when this point is not.
  void add_calls_in(PointId at, std::map<std::uint32_t, Node>& found) const {
    const Node whole = points()[at].node;
    each_inside(whole, [&](Node node) {
      if (node.is(NodeKind::kCall) && (node == whole || !own_points_.contains(node.id()))) {
        found.emplace(node.id(), node);
      }
    });
  }

  static std::vector<Node> in_order(const std::map<std::uint32_t, Node>& found) {
    std::vector<Node> out;
    for (const auto& [id, node] : found) {
      out.push_back(node);
    }
    return out;
  }

  void add_calls(Behind& out) const {
    std::map<std::uint32_t, CallBehind> found;
    for (PointId at = 0; at < points().size(); ++at) {
      if (distance_[at] == kNotBehind) {
        continue;
      }
      std::map<std::uint32_t, Node> calls;
      add_calls_in(at, calls);
      const bool here = std::find(here_.begin(), here_.end(), at) != here_.end();
      for (const auto& [id, node] : calls) {
        const auto [one, fresh] = found.try_emplace(
            id, CallBehind{.call = node, .distance = distance_[at], .here = here});
        one->second.distance = std::min(one->second.distance, distance_[at]);
        one->second.here = one->second.here || here;
      }
    }
    for (const auto& [id, one] : found) {
      out.calls.push_back(one);
    }
  }

  [[nodiscard]] bool holds_line(const std::vector<bool>& seen) const {
    return std::any_of(here_.begin(), here_.end(), [&](PointId at) { return seen[at]; });
  }

  /// However often the choice is made again on the way.
  [[nodiscard]] bool leads_to_line(const std::vector<PointId>& from) const {
    return here_.empty() || holds_line(reached(from, FlowGraph::kEntry));
  }

  /// Every path ends in an uncaught `raise`.
  static bool always_raises(const std::vector<bool>& seen, std::span<const Point> points) {
    if (seen[FlowGraph::kExit]) {
      return false;
    }
    for (PointId at = 0; at < points.size(); ++at) {
      const bool goes_on = seen[at] && !leaves_by_raise(points[at]) &&
                           std::any_of(points[at].out.begin(), points[at].out.end(),
                                       [&seen](const Edge& edge) { return !seen[edge.to]; });
      if (goes_on) {
        return false;
      }
    }
    return true;
  }

  /// The first clause that an exception of this point reaches.
  [[nodiscard]] std::optional<PointId> clause_of(PointId at) const {
    for (const Edge& edge : points()[at].out) {
      const std::size_t decision = points()[edge.to].decision;
      if (edge.way == Way::kRaised && decision != kNone &&
          graph_.decisions()[decision].kind == DecisionKind::kExcept) {
        return edge.to;
      }
    }
    return std::nullopt;
  }

  void add_choice(PointId at, Behind& out) const {
    const Point& point = points()[at];
    const auto clause = clause_of(at);
    const bool decides =
        point.decision != kNone && graph_.decisions()[point.decision].kind != DecisionKind::kExcept;
    if (clause) {
      add_caught(at, *clause, out);
    }
    if (!decides || point.out.size() < 2) {
      return;
    }
    const auto yes = reached(targets(at, true), at);
    const auto no = reached(targets(at, false), at);
    if (always_raises(yes, points()) || always_raises(no, points())) {
      return;
    }
    Choice choice{.decision = graph_.decisions()[point.decision]};
    choice.if_taken = calls_of(yes, no);
    choice.if_not = calls_of(no, yes);
    choice.once = !is_in_loop(at);
    choice.led_here = !here_.empty() && holds_line(yes) != holds_line(no);
    choice.returns = leads_to_line(targets(at, true)) && leads_to_line(targets(at, false));
    keep(at, std::move(choice), out);
  }

  /// An exception skips the call itself and the rest of the `try`.
  void add_caught(PointId at, PointId clause, Behind& out) const {
    const auto raised = reached(targets(clause, true), at);
    auto calm = reached(targets(at, false), at);
    if (always_raises(raised, points())) {
      return;
    }
    calm[at] = true;
    Choice choice{.decision = graph_.decisions()[points()[clause].decision]};
    choice.if_taken = calls_of(raised, calm);
    choice.if_not = calls_of(calm, raised);
    const bool known = std::any_of(out.choices.begin(), out.choices.end(), [&](Choice& other) {
      if (other.decision.kind != DecisionKind::kExcept ||
          !(other.decision.owner == choice.decision.owner)) {
        return false;
      }
      // The earliest point of the `try` skips the most calls.
      for (const Node call : choice.if_not) {
        if (std::find(other.if_not.begin(), other.if_not.end(), call) == other.if_not.end()) {
          other.if_not.push_back(call);
        }
      }
      return true;
    });
    if (!known) {
      choice.once = !is_in_loop(at);
      choice.led_here = !here_.empty() && holds_line(raised) != holds_line(calm);
      choice.returns = leads_to_line(targets(clause, true)) && leads_to_line(targets(at, false));
      keep(clause, std::move(choice), out);
    }
  }

  void keep(PointId at, Choice choice, Behind& out) const {
    choice.distance = distance_[at] == kNotBehind ? 0 : distance_[at];
    out.choices.push_back(std::move(choice));
  }

  const FlowGraph& graph_;
  int line_;
  std::vector<PointId> here_;
  std::set<std::uint32_t> own_points_;
  std::vector<int> distance_;
};

}  // namespace

bool loops(DecisionKind kind) {
  return kind == DecisionKind::kFor || kind == DecisionKind::kIterate ||
         kind == DecisionKind::kWhile;
}

Behind behind(const SourceText& text, const Scope& scope, int line) {
  const FlowGraph& graph = flow_of(text, scope).graph;
  if (graph.points().size() > kMostPoints) {
    return {};
  }
  return Reader(graph, line).read();
}

}  // namespace ddpdoctor::program
