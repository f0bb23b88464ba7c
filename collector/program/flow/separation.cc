// SPDX-License-Identifier: Apache-2.0
#include "collector/program/flow/separation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

namespace ddpdoctor::program {
namespace {

/// The flow graphs of one text, by scope.
struct Flows {
  std::mutex mutex;
  std::map<std::uint32_t, std::unique_ptr<Flow>> by_scope;
};

struct FlowsOfText {
  std::shared_ptr<Flows> flows = std::make_shared<Flows>();
};

/// The ways in which a side left each decision that it depends on.
using Ways = std::map<PointId, std::vector<Dependency>>;

Ways ways_of(const std::vector<Dependency>& dependencies) {
  Ways out;
  for (const Dependency& one : dependencies) {
    out[one.decision].push_back(one);
  }
  return out;
}

std::vector<Dependency> found(const Ways& ways, PointId decision) {
  const auto at = ways.find(decision);
  return at == ways.end() ? std::vector<Dependency>() : at->second;
}

bool has_way(const std::vector<Dependency>& all, Way way) {
  return std::any_of(all.begin(), all.end(),
                     [way](const Dependency& one) { return one.way == way; });
}

/// A way of leaving the point that is not among these.
std::optional<Way> other_way(const Point& point, const std::vector<Dependency>& taken) {
  for (const Edge& edge : point.out) {
    if (edge.way != Way::kNever && !has_way(taken, edge.way)) {
      return edge.way;
    }
  }
  return std::nullopt;
}

/// For a statement that may raise, the decision is whether it raises.
Decision decision_at(const FlowGraph& graph, PointId id) {
  const Point& point = graph.points()[id];
  if (point.decision != kNone) {
    return graph.decisions()[point.decision];
  }
  return {.kind = DecisionKind::kRaise,
          .condition = point.node,
          .owner = point.node,
          .line = point.node.line(),
          .text = point.node.one_line(),
          .statement = point.statement};
}

int nearest(const std::vector<Dependency>& all) {
  int out = 0;
  for (const Dependency& one : all) {
    out = out == 0 ? one.distance : std::min(out, one.distance);
  }
  return out;
}

std::optional<Separating> separation_at(const FlowGraph& graph, PointId id,
                                        const std::vector<Dependency>& a,
                                        const std::vector<Dependency>& b) {
  const Point& point = graph.points()[id];
  Separating out;
  out.leads_to_a = !a.empty();
  out.leads_to_b = !b.empty();
  // A side that several ways reach: it took one of those that the other side cannot have taken.
  const auto only = [](const std::vector<Dependency>& mine, const std::vector<Dependency>& theirs) {
    const auto one = std::find_if(mine.begin(), mine.end(), [&theirs](const Dependency& way) {
      return !has_way(theirs, way.way);
    });
    return one == mine.end() ? std::nullopt : std::optional(one->way);
  };
  auto way_a = a.empty() ? other_way(point, b) : only(a, b);
  auto way_b = b.empty() ? other_way(point, a) : only(b, a);
  // If more ways lead to one side than to the other, it took one of the additional ways.
  if (!way_a && way_b && !a.empty()) {
    way_a = a.front().way;
  } else if (way_a && !way_b && !b.empty()) {
    way_b = b.front().way;
  }
  if (!way_a || !way_b) {
    return std::nullopt;
  }
  out.a = *way_a;
  out.b = *way_b;
  out.decision = decision_at(graph, id);
  const int to_a = nearest(a);
  const int to_b = nearest(b);
  out.distance = to_a == 0 ? to_b : to_b == 0 ? to_a : std::min(to_a, to_b);
  return out;
}

void order(std::vector<Separating>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Separating& x, const Separating& y) {
    const auto rank = [](const Separating& one) {
      return std::pair(one.leads_to_a && one.leads_to_b ? 0 : 1, one.distance);
    };
    return rank(x) < rank(y);
  });
}

const Scope* scope_of(const Frame& frame) {
  return frame.text == nullptr ? nullptr
                               : index_of(*frame.text).scope_of_frame(frame.line, frame.function);
}

bool same_function(const Frame& a, const Frame& b) {
  return a.text == b.text && a.function == b.function && scope_of(a) == scope_of(b);
}

/// Adds the decisions between a function's start and the line, for each of these frames.
void add_below(const CallString& path, std::size_t count, bool of_a, std::vector<Separating>& out) {
  for (std::size_t i = 0; i < count; ++i) {
    const Scope* const scope = scope_of(path[i]);
    if (scope == nullptr) {
      continue;
    }
    const Flow& flow = flow_of(*path[i].text, *scope);
    for (const auto& [id, ways] : ways_of(flow.dependence.of(flow.graph.points_at(path[i].line)))) {
      const auto other = other_way(flow.graph.points()[id], ways);
      if (!other) {
        continue;
      }
      Separating one{.decision = decision_at(flow.graph, id),
                     .text = path[i].text,
                     .scope = scope,
                     .leads_to_a = of_a,
                     .leads_to_b = !of_a,
                     .distance = nearest(ways)};
      one.a = of_a ? ways.front().way : *other;
      one.b = of_a ? *other : ways.front().way;
      out.push_back(std::move(one));
    }
  }
}

/// A simple statement binds its target at its last point; earlier points are parts of its
/// expression.
bool is_done_at(const FlowGraph& graph, const Point& point) {
  const Node statement = graph.index().statements()[point.statement].node;
  return !is_simple_statement(statement.kind()) || point.node == statement;
}

/// The points on paths from `from` to one of `ends` that do not pass `cut`.
std::vector<bool> between(const FlowGraph& graph, PointId from, const std::vector<PointId>& ends,
                          PointId cut) {
  const auto points = graph.points();
  std::vector<bool> ahead(points.size(), false);
  std::vector<PointId> open = {from};
  while (!open.empty()) {
    const PointId at = open.back();
    open.pop_back();
    if (at == cut || ahead[at]) {
      continue;
    }
    ahead[at] = true;
    for (const Edge& edge : points[at].out) {
      open.push_back(edge.to);
    }
  }
  std::vector<bool> behind(points.size(), false);
  for (const PointId end : ends) {
    open.insert(open.end(), points[end].in.begin(), points[end].in.end());
  }
  while (!open.empty()) {
    const PointId at = open.back();
    open.pop_back();
    if (at == cut || behind[at]) {
      continue;
    }
    behind[at] = true;
    open.insert(open.end(), points[at].in.begin(), points[at].in.end());
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    ahead[i] = ahead[i] && behind[i];
  }
  return ahead;
}

}  // namespace

const Flow& flow_of(const SourceText& text, const Scope& scope) {
  const SourceIndex& index = index_of(text);
  const FlowsOfText& all = text.once<FlowsOfText>([] { return FlowsOfText(); });
  const std::lock_guard lock(all.flows->mutex);
  std::unique_ptr<Flow>& flow = all.flows->by_scope[scope.node.id()];
  if (!flow) {
    flow = std::make_unique<Flow>(index, scope);
  }
  return *flow;
}

std::vector<Separating> separating_decisions(const SourceText& text, const Scope& scope, int line_a,
                                             int line_b) {
  const Flow& flow = flow_of(text, scope);
  const Ways a = ways_of(flow.dependence.of(flow.graph.points_at(line_a)));
  const Ways b = ways_of(flow.dependence.of(flow.graph.points_at(line_b)));
  Ways either = a;
  either.insert(b.begin(), b.end());
  std::vector<Separating> out;
  for (const auto& [id, ways] : either) {
    if (auto one = separation_at(flow.graph, id, found(a, id), found(b, id))) {
      one->text = &text;
      one->scope = &scope;
      out.push_back(std::move(*one));
    }
  }
  order(out);
  return out;
}

std::vector<Separating> separating_decisions(const CallString& a, const CallString& b) {
  // Number of frames, from the outermost, in which both sides are at the same line.
  std::size_t depth = 0;
  const std::size_t common = std::min(a.size(), b.size());
  const auto from_outside = [&depth](const CallString& path) -> const Frame& {
    return path[path.size() - 1 - depth];
  };
  while (depth < common && same_function(from_outside(a), from_outside(b)) &&
         from_outside(a).line == from_outside(b).line) {
    ++depth;
  }
  std::vector<Separating> out;
  bool forks = false;
  if (depth < common && same_function(from_outside(a), from_outside(b))) {
    forks = true;
    if (const Scope* const scope = scope_of(from_outside(a))) {
      out = separating_decisions(*from_outside(a).text, *scope, from_outside(a).line,
                                 from_outside(b).line);
    }
  }
  std::vector<Separating> below;
  const std::size_t shared = depth + (forks ? 1 : 0);
  add_below(a, a.size() - shared, true, below);
  add_below(b, b.size() - shared, false, below);
  std::stable_sort(below.begin(), below.end(), [](const Separating& x, const Separating& y) {
    return x.distance < y.distance;
  });
  out.insert(out.end(), below.begin(), below.end());
  return out;
}

std::vector<Binding> changes_between(const SourceText& text, const Scope& scope,
                                     const Decision& decision, Way way, int line,
                                     std::string_view path) {
  const FlowGraph& graph = flow_of(text, scope).graph;
  const auto at = graph.point_of(decision.owner, decision.kind);
  std::vector<Binding> out;
  if (!at) {
    return out;
  }
  const auto ends = graph.points_at(line);
  std::vector<bool> statements(graph.index().statements().size(), false);
  for (const Edge& edge : graph.points()[*at].out) {
    if (edge.way != way) {
      continue;
    }
    const std::vector<bool> on_the_way = between(graph, edge.to, ends, *at);
    for (std::size_t i = 0; i < on_the_way.size(); ++i) {
      const Point& point = graph.points()[i];
      if (on_the_way[i] && point.statement != kNone && is_done_at(graph, point)) {
        statements[point.statement] = true;
      }
    }
  }
  for (std::size_t i = 0; i < statements.size(); ++i) {
    if (!statements[i]) {
      continue;
    }
    for (Binding& binding : bindings_at(graph.index(), i)) {
      if (may_change(binding, path)) {
        out.push_back(std::move(binding));
      }
    }
  }
  return out;
}

}  // namespace ddpdoctor::program
