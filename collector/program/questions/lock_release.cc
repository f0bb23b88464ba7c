// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/lock_release.h"

#include <algorithm>
#include <string>
#include <vector>

#include "collector/program/flow/separation.h"
#include "collector/program/origin/same_object.h"
#include "collector/program/origin/slicer.h"
#include "collector/program/questions/code.h"
#include "collector/program/questions/names.h"

namespace ddpdoctor::program {
namespace {

/// A condition without what turns it round: "x" for `not x`, "a is b" for `a is not b`.
struct Plain {
  std::string text;
  bool turned = false;
};

Plain plain(Node condition) {
  condition = without_parentheses(condition);
  if (condition.is(NodeKind::kNot)) {
    Plain inner = plain(condition.field(Field::kArgument));
    inner.turned = !inner.turned;
    return inner;
  }
  const auto operands = condition.children();
  const auto signs = condition.fields(Field::kOperators);
  if (condition.is(NodeKind::kComparison) && operands.size() == 2 && !signs.empty()) {
    const std::string sign = signs.front().one_line();
    const bool turned = sign == "!=" || sign == "is not" || sign == "not in";
    const std::string positive = sign == "!="       ? "=="
                                 : sign == "is not" ? "is"
                                 : sign == "not in" ? "in"
                                                    : sign;
    return {operands[0].one_line() + " " + positive + " " + operands[1].one_line(), turned};
  }
  return {condition.one_line(), false};
}

/// The paths of one function from a place where it takes the lock.
class Paths {
 public:
  Paths(const SourceText& text, const Scope& scope, std::vector<Node> releases)
      : text_(text),
        scope_(scope),
        flow_(flow_of(text, scope)),
        graph_(flow_.graph),
        releases_(std::move(releases)) {}

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
    const Decision& later = graph_.decisions()[point.decision];
    return std::any_of(conditions.begin(), conditions.end(), [&](const Dependency& one) {
      const Decision& before = graph_.decisions()[graph_.points()[one.decision].decision];
      if (!before.is_test() || !later.is_test()) {
        return before.text == later.text && one.way != way;
      }
      const Plain a = plain(before.condition);
      const Plain b = plain(later.condition);
      const bool same_way = (one.way == way) == (a.turned == b.turned);
      return a.text == b.text && !same_way && !is_assigned_between(before, one.way, later);
    });
  }

  /// An operand of both conditions gets another value between them.
  [[nodiscard]] bool is_assigned_between(const Decision& before, Way way,
                                         const Decision& later) const {
    const auto names = name_chains(before.condition);
    return std::any_of(names.begin(), names.end(), [&](const NameChain& name) {
      const auto changes = changes_between(text_, scope_, before, way, later.line, name.dotted());
      return std::any_of(changes.begin(), changes.end(), [](const Binding& one) {
        return one.kind != BindingKind::kMethod && !one.item;
      });
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

  const SourceText& text_;
  const Scope& scope_;
  const Flow& flow_;
  const FlowGraph& graph_;
  std::vector<Node> releases_;
};

/// The expression at a line, where it is written; no node if the line has no such expression.
Node written_at(const Code& code, const WantedLock& wanted) {
  const std::size_t at = code.header_at(wanted.line);
  Node found;
  for (std::size_t i = at == kNone ? code.at(wanted.line) : at; !found && i < code.size(); ++i) {
    if (code[i].line > wanted.line) {
      break;
    }
    for (const Node part : code.own_parts(i)) {
      each_inside(part, [&](Node node) {
        found =
            !found && !dotted_name(node).empty() && node.one_line() == wanted.name ? node : found;
      });
    }
  }
  return found;
}

/// The functions of one file and the lock that they take and release.
class Releases {
 public:
  Releases(const SourceText& text, const Sources& sources)
      : text_(text), sources_(sources), files_(text, sources), file_(files_.file_of(text)) {}

  [[nodiscard]] ObjectPath path(Node expression) const {
    return path_to(expression, file_, where_of(file_, expression).scope, files_);
  }

  /// The calls of a function that release the lock, or may: their object may be the lock under a
  /// different name. Empty if none of them certainly does.
  [[nodiscard]] std::vector<Node> in(const Scope& scope, const ObjectPath& lock) const {
    std::vector<Node> out;
    bool certain = false;
    for (const MethodCall& call : calls_on(text_, sources_, scope.first_line, scope.last_line)) {
      if (call.method != "release") {
        continue;
      }
      const ObjectPath released =
          call.inner ? ObjectPath{.made = call.made}
                     : path(call.call.field(Field::kFunction).field(Field::kObject));
      const SameObject same = is_same_object(lock, released);
      certain = certain || same == SameObject::kYes;
      if (same != SameObject::kNo) {
        out.push_back(call.call);
      }
    }
    return certain ? out : std::vector<Node>();
  }

 private:
  const SourceText& text_;
  const Sources& sources_;
  Files files_;
  const File& file_;
};

}  // namespace

std::optional<int> leaves_without_release(const SourceText& text, const Sources& sources,
                                          const WantedLock& wanted) {
  const Node expression = written_at(Code(text), wanted);
  if (!expression) {
    return std::nullopt;
  }
  const Releases releases(text, sources);
  const ObjectPath lock = releases.path(expression);
  const FileFacts& facts = facts_of(text);
  const auto [first, last] = facts.calls.equal_range("acquire");
  for (auto one = first; one != last; ++one) {
    const auto& [scope, call] = one->second;
    const std::size_t statement = facts.index->statement_of(call);
    // A result that is tested says whether the lock was taken: `if not lock.acquire(timeout=1)`.
    const bool plain = statement != kNone && call.parent().is(NodeKind::kExpressionStatement);
    const Scope& function = facts.index->scopes()[scope];
    if (!plain || function.kind != ScopeKind::kFunction) {
      continue;
    }
    const ObjectPath taken = releases.path(call.field(Field::kFunction).field(Field::kObject));
    if (is_same_object(lock, taken) != SameObject::kYes) {
      continue;
    }
    auto all = releases.in(function, taken);
    const auto left =
        all.empty() ? std::nullopt : Paths(text, function, std::move(all)).leaving(statement);
    if (left) {
      return left;
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::program
