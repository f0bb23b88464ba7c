// SPDX-License-Identifier: Apache-2.0
// The decisions that control whether a statement runs, and earlier agreements between the ranks.
#include <algorithm>
#include <set>
#include <utility>

#include "collector/program/flow/separation.h"
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

bool decides(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kIf:
    case DecisionKind::kElif:
    case DecisionKind::kWhile:
    case DecisionKind::kTernary:
    case DecisionKind::kAnd:
    case DecisionKind::kOr:
    case DecisionKind::kCase:
    case DecisionKind::kGuard:
    case DecisionKind::kExcept:
      return true;
    case DecisionKind::kFor:
    case DecisionKind::kAssert:
    case DecisionKind::kFilter:
    case DecisionKind::kIterate:
    case DecisionKind::kRaise:
      return false;
  }
  return false;
}

bool decides_by_value(DecisionKind kind) {
  return decides(kind) && kind != DecisionKind::kCase && kind != DecisionKind::kExcept;
}

}  // namespace

/// Decisions that lead to the statement but not to the place where the value is used.
Origin Slicer::guards(const File& file, std::size_t scope, std::size_t statement,
                      const Where& where) {
  constexpr std::size_t kMost = 12;
  const SourceIndex& index = *file.facts->index;
  if (statement == kNone) {
    return {};
  }
  const Scope& around = index.scopes()[scope];
  const Flow& flow = flow_of(*file.text, around);
  const int line = index.statements()[statement].line;
  std::set<std::pair<PointId, Way>> shared;
  const bool same_scope = where.statement != kNone && where.file != nullptr &&
                          where.file->text == file.text && where.scope == scope;
  if (same_scope) {
    const int here = index.statements()[where.statement].line;
    for (const Dependency& one : flow.dependence.of(flow.graph.points_at(here))) {
      shared.emplace(one.decision, one.way);
    }
  }
  Origin out;
  std::size_t seen = 0;
  for (const Dependency& one : flow.dependence.of(flow.graph.points_at(line))) {
    const std::size_t number = flow.graph.points()[one.decision].decision;
    if (number == kNone) {
      continue;
    }
    const Decision& decision = flow.graph.decisions()[number];
    const bool catches = decision.kind == DecisionKind::kExcept;
    const bool around_both =
        same_scope && decision.owner.holds(index.statements()[where.statement].node);
    if (catches ? around_both : shared.contains({one.decision, one.way})) {
      continue;
    }
    // A loop that iterates again depends on its own exits.
    const bool above = decision.line <= line;
    if (!decides(decision.kind) || !above || decision.statement == statement || ++seen > kMost) {
      continue;
    }
    Origin guard;
    if (decision.kind == DecisionKind::kExcept) {
      guard = of(Source::kException);
    } else {
      const Node asked =
          decision.kind == DecisionKind::kCase ? decision.subject : decision.condition;
      guard = evaluate(asked, {.file = &file,
                               .scope = scope,
                               .statement = decision.statement,
                               .activation = where.activation,
                               .depth = where.depth});
    }
    guard.number = false;
    if (guard.source != Source::kUniform) {
      if (decision.condition && decides_by_value(decision.kind)) {
        add_choice(guard, file, decision.condition);
      } else {
        add_step(guard, file, decision.owner);
      }
      out = stronger(std::move(out), std::move(guard));
    }
  }
  return out;
}

/// The ranks reduced or broadcast this value earlier: `dist.all_reduce(flag)`.
bool Slicer::agreed(const File& file, std::size_t scope, std::string_view name,
                    const Where& where) {
  if (where.statement == kNone) {
    return false;
  }
  const int line = file.facts->index->statements()[where.statement].line;
  const auto [first, last] = file.facts->arguments.equal_range(name);
  return std::any_of(first, last, [&](const auto& one) {
    const Node call = one.second.call;
    if (one.second.scope != scope || call.line() >= line) {
      return false;
    }
    const Definition is = files_.resolve(file, scope, dotted_name(call.field(Field::kFunction)));
    const CallRow* row = is.kind == Definition::Kind::kLibrary
                             ? call_of_name(is.qualified)
                             : call_of_attribute(last_of(call.field(Field::kFunction).text()));
    const std::vector<Node> given = arguments_of(call);
    return row != nullptr && row->does == CallDoes::kAgrees && !given.empty() &&
           given.front().text() == name;
  });
}

std::optional<Origin> Slicer::lets_in(Node decorator, const Where& where) {
  const Node callee = decorator.is(NodeKind::kCall) ? decorator.field(Field::kFunction) : decorator;
  const std::string dotted = dotted_name(callee);
  const Definition is = files_.resolve(*where.file, where.scope, dotted);
  Origin out = of(Source::kRank);
  if (is.kind == Definition::Kind::kLibrary) {
    return lets_ranks_in(is.qualified) ? std::optional(out) : std::nullopt;
  }
  if (is.kind != Definition::Kind::kFunction) {
    const Definition owner = callee.is(NodeKind::kAttribute)
                                 ? class_of_value(callee.field(Field::kObject), where)
                                 : Definition{};
    const bool library = owner.kind == Definition::Kind::kLibrary;
    out.by_name = !library;
    const bool named = lets_ranks_in_by_attribute(last_of(dotted));
    return named && (is.kind == Definition::Kind::kUnknown) ? std::optional(out) : std::nullopt;
  }
  // A user's own decorator: inside it, a test of the rank guards the call of the decorated
  // function.
  const File& file = *is.file;
  const Scope& made = file.scopes()[is.scope];
  for (const auto& [name, call] : file.facts->calls) {
    const std::size_t inner = call.scope;
    const bool within = inner != is.scope && made.node.holds(call.call);
    const Definition called = within ? files_.lookup(file, inner, name) : Definition{};
    const bool given = called.kind == Definition::Kind::kVariable && called.scope != inner &&
                       made.node.holds(file.scopes()[called.scope].node);
    if (!given) {
      continue;
    }
    Origin guard = guards(file, inner, file.facts->index->statement_of(call.call),
                          {.file = &file, .scope = inner});
    if (guard.source == Source::kRank) {
      return guard;
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::program
