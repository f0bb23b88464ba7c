// SPDX-License-Identifier: Apache-2.0
#include "collector/values/freshness.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace ddpdoctor::values {

namespace {

using program::Binding;
using program::BindingKind;
using program::Decision;
using program::Field;
using program::Node;
using program::NodeKind;

bool is_loop(Node node) {
  return node.is(NodeKind::kFor) || node.is(NodeKind::kWhile);
}

/// The nodes around a node, innermost first, up to the function.
std::vector<Node> around(Node node, Node function) {
  std::vector<Node> out;
  for (Node outer = node.parent(); outer && outer != function; outer = outer.parent()) {
    out.push_back(outer);
  }
  return out;
}

/// The child of `header` that contains a node.
Node child_around(Node node, Node header) {
  while (node && node.parent() != header) {
    node = node.parent();
  }
  return node;
}

/// A suite of which each run of the header enters exactly one.
bool is_arm(Node node) {
  return node.is(NodeKind::kBlock) || node.is(NodeKind::kElif) || node.is(NodeKind::kElse) ||
         node.is(NodeKind::kCase);
}

/// The nodes are in different suites of one if or match: code in one suite did not run on the way
/// to the other.
bool in_other_arm(Node node, Node here, Node function) {
  for (const Node header : around(here, function)) {
    const bool of_match = header.is(NodeKind::kBlock) && header.parent().is(NodeKind::kMatch);
    if (!header.holds(node) || !(header.is(NodeKind::kIf) || of_match)) {
      continue;
    }
    const Node ours = child_around(here, header);
    const Node theirs = child_around(node, header);
    // The tests of earlier elifs ran; their := assignments count.
    const bool test_before_ours = theirs.is(NodeKind::kElif) && theirs.begin() < ours.begin() &&
                                  theirs.field(Field::kCondition).holds(node);
    if (ours != theirs && is_arm(ours) && is_arm(theirs) && !test_before_ours) {
      return true;
    }
  }
  return false;
}

/// A suite around the node, but not around the current line, ends by leaving the function.
bool in_arm_that_returns(Node node, Node here, Node function) {
  const auto outer = around(node, function);
  return std::any_of(outer.begin(), outer.end(), [&](Node suite) {
    if (!suite.is(NodeKind::kBlock) || suite.holds(here)) {
      return false;
    }
    const auto statements = suite.children();
    return !statements.empty() &&
           (statements.back().is(NodeKind::kReturn) || statements.back().is(NodeKind::kRaise));
  });
}

/// Statements of this kind that leave or go on with this loop, not one inside it.
void add_jumps(Node node, NodeKind kind, std::vector<Node>& out) {
  for (const Node child : node.children()) {
    if (child.is(kind)) {
      out.push_back(child);
    } else if (!is_loop(child) && !child.is(NodeKind::kFunction) && !child.is(NodeKind::kClass)) {
      add_jumps(child, kind, out);
    }
  }
}

/// Every iteration executes the statement: it is in the loop's own suite, and no jump precedes it.
/// The last iteration then executed it after every assignment before it.
bool is_asked_each_time(Node statement, Node loop) {
  const Node body = loop.field(Field::kBody);
  std::vector<Node> jumps;
  add_jumps(body, NodeKind::kBreak, jumps);
  add_jumps(body, NodeKind::kContinue, jumps);
  return statement.parent() == body &&
         std::ranges::none_of(jumps, [&](Node jump) { return jump.begin() < statement.begin(); });
}

std::optional<Stretch> stretch_of(Node function, const Decision& decision, Node here, int line) {
  // The current statement has not yet completed its assignment.
  Stretch way{.from = decision.condition.end(), .to = here.begin()};
  const auto outer = around(decision.owner, function);
  const bool in_its_header = here == decision.owner && line <= decision.condition.last_line();
  const bool in_one_statement =
      here.holds(decision.owner) && program::is_simple_statement(here.kind());
  if (!in_its_header && (line > decision.line || decision.owner.holds(here) || in_one_statement)) {
    // If a loop ended by its test, the test ran after all assignments of its body.
    if (decision.kind == program::DecisionKind::kWhile && !decision.owner.holds(here) &&
        !has_break(decision.owner)) {
      way.from = decision.owner.end();
    }
    // An exception may have ended the last iteration before it.
    bool innermost = std::ranges::none_of(outer, [](Node one) { return one.is(NodeKind::kTry); });
    for (const Node loop : outer) {  // a loop that was left has run to its end
      if (is_loop(loop) && !loop.holds(here)) {
        const bool last = innermost && is_asked_each_time(decision.owner, loop);
        way.from = last ? way.from : std::min(way.from, loop.begin());
      }
      innermost = innermost && !is_loop(loop);
    }
    return way;
  }
  for (const Node loop : outer) {
    if (is_loop(loop) && loop.holds(here)) {
      way.loop = loop;  // the outermost one wins
    }
  }
  return way.loop ? std::optional(way) : std::nullopt;
}

/// Adds the names that the statements on the path call.
void add_called_on(const Stretch& way, Node node, std::set<std::string>& names) {
  for (const Node child : node.children()) {
    if (child.is(NodeKind::kCall) && way.passes(child)) {
      add_called(child, names);
    } else if (!child.is(NodeKind::kFunction) && !child.is(NodeKind::kClass)) {
      add_called_on(way, child, names);
    }
  }
}

}  // namespace

bool has_break(Node loop) {
  const auto children = loop.children();
  return loop.is(NodeKind::kBreak) ||
         std::any_of(children.begin(), children.end(), [](Node child) { return has_break(child); });
}

std::vector<std::string> operands_of(Node expression) {
  std::vector<std::string> out;
  const auto add = [&](Node node, const auto& self) -> void {
    std::string name = program::dotted_name(node);
    if (name.empty()) {
      for (const Node child : node.children()) {
        self(child, self);
      }
    } else if (std::find(out.begin(), out.end(), name) == out.end()) {
      out.push_back(std::move(name));
    }
  };
  add(expression, add);
  return out;
}

Way::Way(const program::SourceIndex& index, const Effects& effects, const program::Scope& function,
         int line)
    : effects_(effects),
      function_(function),
      line_(line),
      bindings_(program::bindings_of(index, function)) {
  const std::size_t statement = index.statement_at(line);
  here_ = statement == program::kNone ? Node() : index.statements()[statement].node;
}

bool Way::left_by(Node arm) const {
  const auto outer = around(arm, function_.node);
  const auto loop = std::find_if(outer.begin(), outer.end(), is_loop);
  if (loop == outer.end() || !loop->is(NodeKind::kWhile) || !is_past(*loop) ||
      std::any_of(loop, outer.end(), [](Node one) { return one.is(NodeKind::kTry); })) {
    return false;
  }
  const Node test = loop->field(Field::kCondition);
  std::vector<Node> breaks;
  add_jumps(loop->field(Field::kBody), NodeKind::kBreak, breaks);
  return (test.is(NodeKind::kTrue) || test.text() == "1") && !breaks.empty() &&
         std::all_of(breaks.begin(), breaks.end(), [arm](Node one) { return arm.holds(one); });
}

bool Way::is_in(const Decision& loop) const {
  return loop.owner.holds(here_) && here_ != loop.owner;
}

bool Way::is_behind(const Decision& loop) const {
  return line_ > loop.owner.last_line();
}

std::optional<bool> Way::outcome(const Decision& decision) const {
  using Kind = program::DecisionKind;
  const bool arms = decision.kind == Kind::kIf || decision.kind == Kind::kElif;
  if (!here_ || !(arms || decision.kind == Kind::kWhile) || here_ == decision.owner) {
    return std::nullopt;
  }
  const Node arm = decision.owner.field(arms ? Field::kConsequence : Field::kBody);
  if (arm.holds(here_) || (arms && left_by(arm))) {
    return true;
  }
  // An elif is a clause of its if: what follows it inside the if belongs to the other branch.
  const Node whole = decision.kind == Kind::kElif ? decision.owner.parent() : decision.owner;
  const auto clauses = arms ? whole.fields(Field::kAlternative) : std::vector<Node>();
  const bool in_later = std::any_of(clauses.begin(), clauses.end(), [&](Node clause) {
    return clause.begin() > decision.condition.begin() && clause != decision.owner &&
           clause.holds(here_);
  });
  return in_later ? std::optional(false) : std::nullopt;
}

Since Way::since(const Decision& decision) const {
  if (!here_) {
    return {.freshness = Freshness::kStale, .reason = "the line is not in its function"};
  }
  const auto way = stretch_of(function_.node, decision, here_, line_);
  if (!way) {
    return {.freshness = Freshness::kNotReached, .reason = "it has not been reached"};
  }
  const std::vector<std::string> operands =
      operands_of(decision.subject ? decision.subject : decision.condition);
  for (const Binding& binding : bindings_) {
    const bool reads = std::any_of(
        operands.begin(), operands.end(),
        [&binding](const std::string& path) { return program::may_change(binding, path); });
    if (!reads || !changes_something(binding) || !way->passes(binding.node) ||
        decision.condition.holds(binding.node)) {
      continue;
    }
    if (!way->loop && (in_other_arm(binding.node, here_, function_.node) ||
                       in_arm_that_returns(binding.node, here_, function_.node))) {
      continue;
    }
    return {.freshness = Freshness::kStale,
            .reason = fmt::format("`{}` is {} in line {}", binding.target,
                                  binding.kind == BindingKind::kMethod ? "changed" : "assigned",
                                  binding.line)};
  }
  return changed_by_calls(*way, {operands.begin(), operands.end()});
}

Since Way::since(const Decision& decision, const std::set<std::string>& read) const {
  const auto way =
      here_ ? stretch_of(function_.node, decision, here_, line_) : std::optional<Stretch>();
  return way ? changed_by_calls(*way, read) : Since{};
}

/// Calls on the path, and the call in progress, may assign attributes and globals.
Since Way::changed_by_calls(const Stretch& way, const std::set<std::string>& paths) const {
  std::set<std::string> called;
  add_called_on(way, function_.node, called);
  if (program::is_simple_statement(here_.kind())) {
    add_called(here_, called);
  }
  for (const std::string& path : paths) {
    if (const auto writer = effects_.writer(path.substr(path.rfind('.') + 1), called)) {
      return {.freshness = Freshness::kStale,
              .reason = fmt::format("`{}` is assigned in line {}, in {}", path, writer->line,
                                    writer->function)};
    }
  }
  return {};
}

}  // namespace ddpdoctor::values
