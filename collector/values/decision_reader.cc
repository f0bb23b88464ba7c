// SPDX-License-Identifier: Apache-2.0
#include "collector/values/decision_reader.h"

#include <utility>

#include "base/text.h"
#include "collector/model/secrets.h"
#include "collector/values/from_syntax.h"

namespace ddpdoctor::values {

namespace {

using model::SeenValue;
using model::ValueRole;
using model::ValueState;
using program::Field;
using program::Node;
using program::NodeKind;

constexpr std::size_t kLongestText = 64;
constexpr std::size_t kLongestExpression = 120;

}  // namespace

SeenValue DecisionReader::made(ValueRole role, const Whereabouts& where, int line,
                               const std::string& expression) {
  return {.rank = {},
          .role = role,
          .file = where.file,
          .line = line,
          .function = where.function,
          .at = where.at,
          .expression = base::elide(expression, kLongestExpression),
          .value = {},
          .state = ValueState::kUnknown,
          .reason = {}};
}

std::string DecisionReader::shown(const Value& value, const std::string& expression) {
  const std::string text = evaluator_.text(value, kLongestText);
  if (value.is_number() || value.kind == Value::Kind::kNone) {
    return text;
  }
  return model::is_secret(expression) ? "…" : model::without_secrets(text);
}

/// The result of a condition by those of its parts whose values have not changed: one false part of
/// `a and b` is enough.
std::optional<bool> DecisionReader::settled(Node part, const Asked& asked, Names& names) {
  part = program::without_parentheses(part);
  if (part.is(NodeKind::kNot)) {
    const auto inner = settled(part.field(Field::kArgument), asked, names);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (part.is(NodeKind::kBoolean)) {
    const bool all = part.field(Field::kOperator).text() == "and";
    const auto left = settled(part.field(Field::kLeft), asked, names);
    const auto right = settled(part.field(Field::kRight), asked, names);
    if ((left && *left != all) || (right && *right != all)) {
      return !all;
    }
    return left && right ? std::optional(all) : std::nullopt;
  }
  if (asked.since_of_part(part).freshness != Freshness::kFresh) {
    return std::nullopt;
  }
  const Value value = evaluator_.truth(evaluator_.evaluate(expression_of(part), names));
  const bool changed = asked.assigned_since &&
                       asked.assigned_since(evaluator_.read()).freshness != Freshness::kFresh;
  return value.known() && !changed && evaluator_.only_now().empty()
             ? std::optional(value.integer != 0)
             : std::nullopt;
}

/// What is sure of a test: by where the rank is, or, where its value is not `known`, by its parts.
std::optional<bool> DecisionReader::outcome_of(const Asked& asked, bool known, Names& names) {
  if (!asked.is_test) {
    return std::nullopt;
  }
  if (asked.outcome || known || !asked.since_of_part) {
    return asked.outcome;
  }
  return settled(asked.condition, asked, names);
}

void DecisionReader::add(const Whereabouts& where, const Asked& asked, Names& names) {
  Since since = asked.since;
  if (since.freshness == Freshness::kNotReached) {
    // The result now does not explain how the ranks diverged; it is shown next to the result on the
    // ranks that reached the decision.
    since = {.freshness = Freshness::kStale, .reason = std::string(kNotAgain)};
  }
  const Expression expression = expression_of(asked.condition);
  const Value value = evaluator_.evaluate(expression, names);
  const Value decided = asked.is_test ? evaluator_.truth(value) : value;
  if (since.freshness == Freshness::kFresh && asked.assigned_since) {
    since = asked.assigned_since(evaluator_.read());
  }
  const Since of_operands = since;
  if (since.freshness == Freshness::kFresh && !evaluator_.only_now().empty()) {
    since = {.freshness = Freshness::kStale, .reason = evaluator_.only_now()};
  }
  const bool known = decided.known() && since.freshness == Freshness::kFresh;
  const std::optional<bool> outcome = outcome_of(asked, known, names);
  SeenValue seen = made(ValueRole::kDecision, where, asked.line, expression.source);
  if (outcome) {
    seen.value = *outcome ? "True" : "False";
    seen.state = ValueState::kKnown;
  } else if (decided.known()) {
    seen.value = shown(decided, expression.source);
    seen.state = since.freshness == Freshness::kStale ? ValueState::kStale : ValueState::kKnown;
    seen.reason = since.reason;
  } else {
    seen.reason = decided.text;
  }
  out_.push_back(std::move(seen));
  add_operands(where, asked, asked.condition, of_operands, names);
}

/// Adds the plain values that the condition reads, including those in arguments of calls.
void DecisionReader::add_operands(const Whereabouts& where, const Asked& asked, Node part,
                                  const Since& since, Names& names) {
  part = program::without_parentheses(part);
  switch (part.kind()) {
    case NodeKind::kName:
    case NodeKind::kAttribute:
    case NodeKind::kSubscript:
      add_operand(where, asked, part, since, names);
      return;
    case NodeKind::kKeywordArgument:
      add_operands(where, asked, part.field(Field::kValue), since, names);
      return;
    case NodeKind::kCall:
      add_operands(where, asked, part.field(Field::kArguments), since, names);
      return;
    case NodeKind::kGenerator:  // its other parts have names of their own
    case NodeKind::kListComprehension:
    case NodeKind::kSetComprehension:
    case NodeKind::kDictionaryComprehension:
      for (const Node clause : part.children()) {
        if (clause.is(NodeKind::kForIn)) {
          add_operands(where, asked, clause.field(Field::kRight), since, names);
          return;
        }
      }
      return;
    case NodeKind::kNamed:
      add_operands(where, asked, part.field(Field::kValue), since, names);
      return;
    case NodeKind::kLambda:
      return;
    default:
      for (const Node child : part.children()) {
        add_operands(where, asked, child, since, names);
      }
  }
}

void DecisionReader::add_operand(const Whereabouts& where, const Asked& asked, Node part,
                                 const Since& since, Names& names) {
  const bool whole = part == program::without_parentheses(asked.condition);
  const Expression expression = expression_of(part);
  const Value value = whole ? Value() : evaluator_.evaluate(expression, names);
  if (!evaluator_.says_all(value)) {
    return;
  }
  Since own = since;
  if (own.freshness == Freshness::kStale && asked.since_of_part) {
    own = asked.since_of_part(part);
    if (own.freshness == Freshness::kFresh && asked.assigned_since) {
      own = asked.assigned_since(evaluator_.read());
    }
    if (own.freshness == Freshness::kNotReached) {
      own = since;
    }
  }
  SeenValue seen = made(ValueRole::kOperand, where, asked.line, expression.source);
  seen.value = shown(value, expression.source);
  seen.state = own.freshness == Freshness::kFresh ? ValueState::kKnown : ValueState::kStale;
  seen.reason = own.reason;
  out_.push_back(std::move(seen));
}

}  // namespace ddpdoctor::values
