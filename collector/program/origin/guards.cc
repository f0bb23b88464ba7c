// SPDX-License-Identifier: Apache-2.0
// The decisions that control whether a statement runs, and earlier agreements between the ranks.
#include <algorithm>
#include <set>
#include <utility>

#include "collector/program/flow/separation.h"
#include "collector/program/origin/called_lines.h"
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

/// Whether a statement runs is the rank's own choice, or that of a switch in the environment. The
/// size of the job is excluded: a job of one process has no other rank to agree with.
bool may_be_left_out(const Origin& guard) {
  const bool by_size = guard.variables.size() == 1 && guard.variables.front() == "WORLD_SIZE";
  return (is_own(guard.source) && !guard.like_an_option) ||
         (guard.source == Source::kEnvironment && !by_size);
}

/// Records do not show that the call was left out; they have no calls of mpi4py.
bool took_place(const CallRow& agreement, const SourceText& text, Node call) {
  return agreement.module.starts_with("mpi4py") || may_have_called(text, call);
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
      const Where there{.file = &file,
                        .scope = scope,
                        .statement = decision.statement,
                        .activation = where.activation,
                        .depth = where.depth};
      guard = decides_by_value(decision.kind) ? truth(asked, there) : evaluate(asked, there);
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

/// The ranks reduced or broadcast this value earlier, and none left that out:
/// `dist.all_reduce(flag)`.
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
           given.front().text() == name && took_place(*row, *file.text, call) &&
           !may_be_left_out(guards(file, scope, file.facts->index->statement_of(call), where));
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
    const bool users = is.kind == Definition::Kind::kClass || is.kind == Definition::Kind::kModule;
    return named && !users ? std::optional(out) : std::nullopt;
  }
  const Key key{is.file, is.scope, "@"};
  if (open_.contains(key) || !enter(key)) {
    return std::nullopt;
  }
  auto inside = lets_in_by(*is.file, is.scope);
  leave(key);
  return inside;
}

// A test of the rank guards the call of the given function, the function that makes this call is
// itself restricted, or a library's wrapper is given it: `acc.on_main_process(method)(*a)`.
std::optional<Origin> Slicer::lets_in_by(const File& file, std::size_t decorator) {
  const Scope& made = file.scopes()[decorator];
  const auto given = [&](std::size_t from, std::string_view name) {
    const Definition is = files_.lookup(file, from, name);
    return is.kind == Definition::Kind::kVariable && is.file == &file &&
                   made.node.holds(file.scopes()[is.scope].node)
               ? is.scope
               : kNone;
  };
  for (const auto& [name, call] : file.facts->calls) {
    if (!made.node.holds(call.call)) {
      continue;
    }
    const Scope& around = file.scopes()[call.scope];
    const std::size_t owner = given(call.scope, name);
    if (call.scope != decorator && owner != kNone && owner != call.scope) {
      Origin guard = guards(file, call.scope, file.facts->index->statement_of(call.call),
                            {.file = &file, .scope = call.scope});
      if (guard.source == Source::kRank) {
        return guard;
      }
      for (const Node one : around.decorators) {
        if (auto out = lets_in(one, {.file = &file, .scope = around.outer})) {
          return out;
        }
      }
    }
    for (const Node argument : arguments_of(call.call)) {
      const std::size_t from =
          argument.is(NodeKind::kName) ? given(call.scope, argument.text()) : kNone;
      const auto of = from == kNone ? std::span<const Parameter>() : file.scopes()[from].parameters;
      const bool parameter = std::any_of(
          of.begin(), of.end(), [&](const Parameter& one) { return one.name == argument.text(); });
      if (auto out =
              parameter ? lets_in(call.call, {.file = &file, .scope = call.scope}) : std::nullopt) {
        return out;
      }
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::program
