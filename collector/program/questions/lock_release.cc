// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/lock_release.h"

#include <algorithm>
#include <string>
#include <vector>

#include "collector/program/flow/separation.h"
#include "collector/program/origin/definitions.h"

namespace ddpdoctor::program {
namespace {

/// The paths of one function from a place where it takes the lock.
class Paths {
 public:
  Paths(const Flow& flow, std::vector<Node> releases)
      : flow_(flow), graph_(flow.graph), releases_(std::move(releases)) {}

  /// The first return or raise that is reached with the lock held and leaves the function with it.
  [[nodiscard]] std::optional<int> leaving(std::size_t taken) const {
    std::vector<PointId> start;
    for (PointId id = 0; id < graph_.points().size(); ++id) {
      if (graph_.points()[id].statement == taken) {
        start.push_back(id);
      }
    }
    const auto conditions = flow_.dependence.of(start);
    std::optional<int> line;
    for (const PointId id : reached(start, conditions, false)) {
      const auto beyond = leaves(id) ? reached({id}, conditions, true) : std::vector<PointId>();
      if (std::find(beyond.begin(), beyond.end(), FlowGraph::kExit) != beyond.end()) {
        const int at = statement_of(id).line;
        line = std::min(line.value_or(at), at);
      }
    }
    return line;
  }

 private:
  [[nodiscard]] const Statement& statement_of(PointId id) const {
    return graph_.index().statements()[graph_.points()[id].statement];
  }

  [[nodiscard]] bool leaves(PointId id) const {
    const Point& point = graph_.points()[id];
    if (point.statement == kNone) {
      return false;
    }
    const Node statement = statement_of(id).node;
    return point.node == statement &&
           (statement.is(NodeKind::kReturn) || statement.is(NodeKind::kRaise));
  }

  [[nodiscard]] bool releases(PointId id) const {
    const Point& point = graph_.points()[id];
    const Node evaluated =
        point.decision == kNone ? point.node : graph_.decisions()[point.decision].condition;
    return std::any_of(releases_.begin(), releases_.end(),
                       [evaluated](Node call) { return evaluated.holds(call); });
  }

  /// The lock was taken under a condition, which is tested again: `if shared: lock.acquire()`.
  [[nodiscard]] bool contradicts(const Point& point, Way way,
                                 const std::vector<Dependency>& conditions) const {
    if (point.decision == kNone) {
      return false;
    }
    const std::string& text = graph_.decisions()[point.decision].text;
    return std::any_of(conditions.begin(), conditions.end(), [&](const Dependency& one) {
      const Point& before = graph_.points()[one.decision];
      return graph_.decisions()[before.decision].text == text && one.way != way;
    });
  }

  /// The points that are reached without a release. The points of `from` themselves take the lock
  /// or leave, so that an exception of theirs is not followed unless it is what leaves.
  [[nodiscard]] std::vector<PointId> reached(std::vector<PointId> from,
                                             const std::vector<Dependency>& conditions,
                                             bool is_leaving) const {
    std::vector<bool> seen(graph_.points().size());
    std::vector<PointId> out;
    std::vector<PointId> open = from;
    while (!open.empty()) {
      const PointId at = open.back();
      open.pop_back();
      const bool first = std::find(from.begin(), from.end(), at) != from.end();
      for (const Edge& edge : graph_.points()[at].out) {
        const bool raises = edge.way == Way::kRaised && first && !is_leaving;
        const bool other_exit = is_leaving && leaves(edge.to);
        if (seen[edge.to] || raises || other_exit || edge.way == Way::kNever || releases(edge.to) ||
            contradicts(graph_.points()[at], edge.way, conditions)) {
          continue;
        }
        seen[edge.to] = true;
        out.push_back(edge.to);
        open.push_back(edge.to);
      }
    }
    return out;
  }

  const Flow& flow_;
  const FlowGraph& graph_;
  std::vector<Node> releases_;
};

std::vector<Node> releases_in(const SourceText& text, const Sources& sources, const Scope& scope,
                              std::string_view lock) {
  std::vector<Node> out;
  for (const MethodCall& call : calls_on(text, sources, scope.first_line, scope.last_line)) {
    if (call.method == "release" && last_of(call.object) == last_of(lock)) {
      out.push_back(call.call);
    }
  }
  return out;
}

}  // namespace

std::optional<int> leaves_without_release(const SourceText& text, const Sources& sources,
                                          std::string_view lock) {
  const FileFacts& facts = facts_of(text);
  const auto [first, last] = facts.calls.equal_range("acquire");
  for (auto one = first; one != last; ++one) {
    const auto& [scope, call] = one->second;
    const std::size_t statement = facts.index->statement_of(call);
    // A result that is tested says whether the lock was taken: `if not lock.acquire(timeout=1)`.
    const bool plain = statement != kNone && call.parent().is(NodeKind::kExpressionStatement);
    const Node object = call.field(Field::kFunction).field(Field::kObject);
    if (!plain || object.one_line() != lock ||
        facts.index->scopes()[scope].kind != ScopeKind::kFunction) {
      continue;
    }
    const Scope& function = facts.index->scopes()[scope];
    auto releases = releases_in(text, sources, function, lock);
    const auto left = releases.empty()
                          ? std::nullopt
                          : Paths(flow_of(text, function), std::move(releases)).leaving(statement);
    if (left) {
      return left;
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::program
