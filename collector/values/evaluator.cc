// SPDX-License-Identifier: Apache-2.0
#include "collector/values/evaluator.h"

#include <charconv>

#include "collector/stacks/python/containers.h"
#include "collector/values/arithmetic.h"

namespace ddpdoctor::values {

namespace {

using ExpressionKind = Expression::Kind;

constexpr int kDeepest = 48;  // nested nodes, including entered functions
constexpr int kStepsPerExpression = 2000;
constexpr int kStepsPerLookAtClock = 16;
constexpr std::size_t kLongestString = 4096;

/// Includes 0x10, 0o7, 0b1 and 1_000.
Value integer_literal(std::string text) {
  std::erase(text, '_');
  int base = 10;
  std::size_t digits = 0;
  if (text.size() > 2 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    base = letter == 'x' ? 16 : (letter == 'o' ? 8 : (letter == 'b' ? 2 : 10));
    digits = base == 10 ? 0 : 2;
  }
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + digits, end, value, base);
  return error == std::errc() && stop == end ? Value::number(value)
                                             : Value::unknown("the number " + text);
}

Value float_literal(std::string text) {
  std::erase(text, '_');
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? Value::number(value)
                                             : Value::unknown("the number " + text);
}

}  // namespace

Value Evaluator::evaluate(const Expression& expression, stacks::Scope& scope) {
  Names names{.scope = &scope};
  return evaluate(expression, names);
}

Value Evaluator::evaluate(const Expression& expression, Names& names) {
  steps_ = 0;
  entered_ = 0;
  read_.clear();
  only_now_.clear();
  return node(expression, names, 0);
}

bool Evaluator::tired() {
  ++steps_;
  if (steps_ > kStepsPerExpression) {
    return true;
  }
  return deadline_ && steps_ % kStepsPerLookAtClock == 1 && CpuClock::now() >= *deadline_;
}

Value Evaluator::load(RemoteAddress object) {
  if (object == 0) {
    return Value::unknown("its memory cannot be read");
  }
  const std::string type = objects_.type_name(object);
  Value value{.kind = Value::Kind::kObject, .address = object};
  if (type == "NoneType") {
    value.kind = Value::Kind::kNone;
  } else if (type == "bool" || type == "int") {
    if (const auto number = objects_.integer(object)) {
      value.kind = type == "bool" ? Value::Kind::kBool : Value::Kind::kInteger;
      value.integer = *number;
    }
  } else if (type == "float") {
    if (const auto number = objects_.real(object)) {
      value.kind = Value::Kind::kReal;
      value.real = *number;
    }
  } else if (type == "str") {
    const auto count = stacks::length_of(objects_, object);
    const auto text =
        count && *count <= kLongestString ? objects_.string(object, kLongestString) : std::nullopt;
    if (text) {
      value.kind = Value::Kind::kString;
      value.text = *text;
    }
  } else if (type.empty()) {
    return Value::unknown("its memory cannot be read");
  }
  return value;
}

Value Evaluator::literal(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::kNone:
      return Value::none();
    case ExpressionKind::kTrue:
    case ExpressionKind::kFalse:
      return Value::boolean(expression.kind == ExpressionKind::kTrue);
    case ExpressionKind::kInteger:
      return integer_literal(expression.text);
    case ExpressionKind::kFloat:
      return float_literal(expression.text);
    default:
      return Value::string(expression.text);
  }
}

Value Evaluator::name(const Expression& expression, Names& names) {
  if (entered_ > 0) {
    read_.insert(expression.text);
  }
  if (const auto bound = names.bound.find(expression.text); bound != names.bound.end()) {
    return bound->second;
  }
  const stacks::Binding found = names.scope->find(expression.text);
  switch (found.kind) {
    case stacks::Binding::Kind::kValue:
      return load(found.value);
    case stacks::Binding::Kind::kUnbound:
      return Value::unknown("`" + expression.text + "` has no value yet");
    case stacks::Binding::Kind::kAbsent:
      break;
  }
  return Value::unknown("`" + expression.text + "` is not defined");
}

Value Evaluator::boolean_operation(const Expression& expression, Names& names, int depth) {
  // Continues while the left side has this truth.
  const bool wanted = expression.kind == ExpressionKind::kAnd;
  Value left = node(expression.parts[0], names, depth + 1);
  const Value decided = truth(left);
  if (decided.known() && (decided.integer != 0) != wanted) {
    return left;
  }
  Value right = node(expression.parts[1], names, depth + 1);
  if (decided.known()) {
    return right;
  }
  // `unknown and False` is false whatever the left side is: only its truth is known.
  const Value other = truth(right);
  return other.known() && (other.integer != 0) != wanted ? Value::boolean(!wanted) : decided;
}

Value Evaluator::comparison(const Expression& expression, Names& names, int depth) {
  Value left = node(expression.parts[0], names, depth + 1);
  Value result = Value::boolean(true);
  for (std::size_t i = 1; i < expression.parts.size() && i <= expression.words.size(); ++i) {
    Value right = node(expression.parts[i], names, depth + 1);
    result = compare(expression.words[i - 1], left, right);
    const Value decided = truth(result);
    if (!decided.known() || decided.integer == 0) {
      return result;
    }
    left = std::move(right);
  }
  return result;
}

Value Evaluator::sequence(const Expression& expression, Names& names, int depth) {
  const char* kind = expression.kind == ExpressionKind::kTuple ? "tuple"
                     : expression.kind == ExpressionKind::kSet ? "set"
                                                               : "list";
  std::vector<Value> items;
  for (const Expression& part : expression.parts) {
    items.push_back(node(part, names, depth + 1));
    if (!items.back().known()) {
      return items.back();
    }
  }
  return Value::sequence(kind, std::move(items));
}

Value Evaluator::node(const Expression& expression, Names& names, int depth) {
  if (depth > kDeepest || tired()) {
    return Value::unknown("it takes too long to work out");
  }
  const auto part = [&](std::size_t i) { return node(expression.parts[i], names, depth + 1); };
  switch (expression.kind) {
    case ExpressionKind::kName:
      return name(expression, names);
    case ExpressionKind::kAttribute:
      return attribute(part(0), expression.text, depth);
    case ExpressionKind::kSubscript:
      return subscript(part(0), part(1));
    case ExpressionKind::kCall:
      return call(expression, names, depth);
    case ExpressionKind::kNone:
    case ExpressionKind::kTrue:
    case ExpressionKind::kFalse:
    case ExpressionKind::kInteger:
    case ExpressionKind::kFloat:
    case ExpressionKind::kString:
      return literal(expression);
    case ExpressionKind::kTuple:
    case ExpressionKind::kList:
    case ExpressionKind::kSet:
      return sequence(expression, names, depth);
    case ExpressionKind::kNot: {
      const Value value = truth(part(0));
      return value.known() ? Value::boolean(value.integer == 0) : value;
    }
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr:
      return boolean_operation(expression, names, depth);
    case ExpressionKind::kCompare:
      return comparison(expression, names, depth);
    case ExpressionKind::kUnary:
      return unary(expression.text, as_plain(part(0)));
    case ExpressionKind::kBinary:
      if (expression.text == "/") {
        Value left = part(0);
        Value right = part(1);
        const auto folder = left.kind == Value::Kind::kString ? std::nullopt : path_text(left);
        return folder ? file_answer("pathlib", "__truediv__", {std::move(left), std::move(right)})
                            .value_or(Value::unknown("a path that is put together"))
                      : binary("/", as_plain(left), as_plain(right));
      }
      return binary(expression.text, as_plain(part(0)), as_plain(part(1)));
    case ExpressionKind::kConditional: {
      const Value test = truth(part(0));
      return test.known() ? part(test.integer != 0 ? 1 : 2) : test;
    }
    case ExpressionKind::kNamed:
      return part(0);
    case ExpressionKind::kComprehension:
      return comprehension(expression, names, depth);
    case ExpressionKind::kLet: {
      Names inner{.scope = names.scope, .bound = names.bound};
      inner.bound.insert_or_assign(expression.text, part(0));
      return node(expression.parts[1], inner, depth + 1);
    }
    case ExpressionKind::kMade:  // read only by make()
    case ExpressionKind::kYielded:
    case ExpressionKind::kOther:
      break;
  }
  return Value::unknown(expression.text);
}

}  // namespace ddpdoctor::values
