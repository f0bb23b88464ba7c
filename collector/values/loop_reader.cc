// SPDX-License-Identifier: Apache-2.0
#include "collector/values/loop_reader.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "collector/values/from_syntax.h"

namespace ddpdoctor::values {

namespace {

using model::SeenValue;
using model::ValueRole;
using model::ValueState;
using program::Decision;

std::string text_of(const stacks::Iteration& loop) {
  if (loop.loose) {
    return {};
  }
  if (const auto total = loop.total()) {
    return fmt::format("iteration {} of {}", *loop.done, *total);
  }
  return loop.done   ? fmt::format("iteration {}", *loop.done)
         : loop.left ? fmt::format("{} to come", *loop.left)
                     : std::string();
}

/// The clauses of the one comprehension on a line; empty where there are several or none.
std::vector<Decision> comprehension_at(const program::SourceIndex& index, int line) {
  std::vector<Decision> clauses;
  for (Decision& each : program::decisions_of(index, index.function_at(line))) {
    const program::Node whole = each.owner.parent();
    if (each.kind == program::DecisionKind::kIterate && whole.line() <= line &&
        whole.last_line() >= line) {
      if (!clauses.empty() && clauses.front().owner.parent() != whole) {
        return {};
      }
      clauses.push_back(std::move(each));
    }
  }
  return clauses;
}

}  // namespace

bool is_comprehension(std::string_view function) {
  return function == "<listcomp>" || function == "<dictcomp>" || function == "<setcomp>" ||
         function == "<genexpr>";
}

void LoopReader::add(const In& frame, const std::vector<Decision>& decisions) {
  std::vector<const Decision*> entered;
  for (const Decision& decision : decisions) {
    if (decision.kind == program::DecisionKind::kFor && frame.way.is_in(decision)) {
      entered.push_back(&decision);
    } else if (decision.kind == program::DecisionKind::kFor && frame.way.is_behind(decision)) {
      add_one(frame.where, decision, "ended");
      add_length(frame, decision);
    }
  }
  for (std::size_t i = 0; i < entered.size(); ++i) {
    const bool told = entered.size() == frame.iterations.size();
    add_one(frame.where, *entered[i], told ? text_of(frame.iterations[i]) : std::string());
  }
}

void LoopReader::add_comprehension(const stacks::Frame& frame, const program::SourceIndex& index) {
  const auto clauses = comprehension_at(index, frame.line);
  for (std::size_t i = 0; i < clauses.size() && frame.loops.size() == clauses.size(); ++i) {
    add_one({.file = frame.file, .function = frame.function, .at = frame.line}, clauses[i],
            text_of(frame.loops[i]));
  }
}

void LoopReader::add_one(const Whereabouts& where, const Decision& loop, const std::string& text) {
  SeenValue seen = DecisionReader::made(ValueRole::kLoop, where, loop.line, loop.text);
  seen.value = text;
  seen.state = text.empty() ? ValueState::kUnknown : ValueState::kKnown;
  seen.reason = text.empty() ? "its iterator does not say how far it is" : "";
  out_.push_back(std::move(seen));
}

/// Of a loop that only its end ends, over a container: how often it went round.
void LoopReader::add_length(const In& frame, const Decision& loop) {
  if (has_break(loop.owner) || frame.way.since(loop).freshness != Freshness::kFresh) {
    return;
  }
  stacks::Scope scope = frame.scope;
  Names names{.scope = &scope};
  const Expression over = expression_of(loop.condition);
  const auto length = evaluator_.items_in(evaluator_.evaluate(over, names));
  if (length && frame.way.since(loop, evaluator_.read()).freshness == Freshness::kFresh) {
    SeenValue seen = DecisionReader::made(ValueRole::kOperand, frame.where, loop.line,
                                          fmt::format("len({})", over.source));
    seen.value = fmt::format("{}", *length);
    seen.state = ValueState::kKnown;
    out_.push_back(std::move(seen));
  }
}

}  // namespace ddpdoctor::values
