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
  SeenValue seen = made(ValueRole::kDecision, where, asked.line, expression.source);
  if (asked.is_test && asked.outcome) {
    seen.value = *asked.outcome ? "True" : "False";
    seen.state = ValueState::kKnown;
  } else if (decided.known()) {
    seen.value = shown(decided, expression.source);
    seen.state = since.freshness == Freshness::kStale ? ValueState::kStale : ValueState::kKnown;
    seen.reason = since.reason;
  } else {
    seen.reason = decided.text;
  }
  out_.push_back(std::move(seen));
  add_operands(where, asked.line, expression, expression, since, names);
}

/// Adds the plain values that the condition reads, including those in arguments of calls.
void DecisionReader::add_operands(const Whereabouts& where, int line, const Expression& whole,
                                  const Expression& part, const Since& since, Names& names) {
  using Kind = Expression::Kind;
  const bool chain =
      part.kind == Kind::kName || part.kind == Kind::kAttribute || part.kind == Kind::kSubscript;
  if (!chain) {
    for (std::size_t i = part.kind == Kind::kCall ? 1 : 0; i < part.parts.size(); ++i) {
      add_operands(where, line, whole, part.parts[i], since, names);
    }
    return;
  }
  const Value value = &part == &whole ? Value() : evaluator_.evaluate(part, names);
  if (evaluator_.says_all(value)) {
    SeenValue seen = made(ValueRole::kOperand, where, line, part.source);
    seen.value = shown(value, part.source);
    seen.state = since.freshness == Freshness::kStale ? ValueState::kStale : ValueState::kKnown;
    seen.reason = since.reason;
    out_.push_back(std::move(seen));
  }
}

}  // namespace ddpdoctor::values
