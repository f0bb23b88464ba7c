// SPDX-License-Identifier: Apache-2.0
#include "collector/values/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ddpdoctor::values {

namespace {

using Kind = Value::Kind;

constexpr std::size_t kLongestJoined = 4096;

Value too_large() {
  return Value::unknown("a number of more than 64 bits");
}

Value would_raise(std::string_view operation) {
  return Value::unknown("`" + std::string(operation) + "` of values that do not go with it");
}

/// Python rounds towards minus infinity, C++ towards 0.
bool rounds_down_further(std::int64_t a, std::int64_t b) {
  return a % b != 0 && (a < 0) != (b < 0);
}

Value power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    return base == 0
               ? would_raise("**")
               : Value::number(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (i > 64 && result != 0 && result != 1 && result != -1) {
      return too_large();
    }
    if (__builtin_mul_overflow(result, base, &result)) {
      return too_large();
    }
    if (i > 64) {  // the powers of 0, 1 and -1 repeat
      return Value::number(base == -1 && exponent % 2 == 0 ? std::int64_t{1} : base);
    }
  }
  return Value::number(result);
}

Value shifted(std::string_view operation, std::int64_t a, std::int64_t b) {
  if (b < 0) {
    return would_raise(operation);
  }
  if (operation == ">>") {
    return Value::number(b > 63 ? (a < 0 ? std::int64_t{-1} : std::int64_t{0}) : a >> b);
  }
  std::int64_t result = 0;
  if (b > 62 || __builtin_mul_overflow(a, std::int64_t{1} << b, &result)) {
    return a == 0 ? Value::number(std::int64_t{0}) : too_large();
  }
  return Value::number(result);
}

Value of_bits(std::string_view operation, const Value& left, const Value& right) {
  const std::int64_t a = left.integer;
  const std::int64_t b = right.integer;
  const std::int64_t result = operation == "&" ? (a & b) : (operation == "|" ? (a | b) : (a ^ b));
  return left.kind == Kind::kBool && right.kind == Kind::kBool ? Value::boolean(result != 0)
                                                               : Value::number(result);
}

Value of_integers(std::string_view operation, const Value& left, const Value& right) {
  const std::int64_t a = left.integer;
  const std::int64_t b = right.integer;
  std::int64_t result = 0;
  if (operation == "+") {
    return __builtin_add_overflow(a, b, &result) ? too_large() : Value::number(result);
  }
  if (operation == "-") {
    return __builtin_sub_overflow(a, b, &result) ? too_large() : Value::number(result);
  }
  if (operation == "*") {
    return __builtin_mul_overflow(a, b, &result) ? too_large() : Value::number(result);
  }
  if (operation == "//" || operation == "%") {
    if (b == 0) {
      return would_raise(operation);
    }
    if (b == -1) {
      return operation == "%" ? Value::number(std::int64_t{0})
                              : (a == INT64_MIN ? too_large() : Value::number(-a));
    }
    const bool further = rounds_down_further(a, b);
    return Value::number(operation == "//" ? a / b - (further ? 1 : 0) : a % b + (further ? b : 0));
  }
  if (operation == "/") {
    return b == 0 ? would_raise(operation)
                  : Value::number(static_cast<double>(a) / static_cast<double>(b));
  }
  if (operation == "**") {
    return power(a, b);
  }
  if (operation == "<<" || operation == ">>") {
    return shifted(operation, a, b);
  }
  if (operation == "&" || operation == "|" || operation == "^") {
    return of_bits(operation, left, right);
  }
  return would_raise(operation);
}

Value of_reals(std::string_view operation, double a, double b) {
  if (operation == "+") {
    return Value::number(a + b);
  }
  if (operation == "-") {
    return Value::number(a - b);
  }
  if (operation == "*") {
    return Value::number(a * b);
  }
  if (operation == "**" && a >= 0) {
    return a == 0 && b < 0 ? would_raise(operation) : Value::number(std::pow(a, b));
  }
  if (b == 0) {
    return would_raise(operation);
  }
  if (operation == "/") {
    return Value::number(a / b);
  }
  if (operation == "%" || operation == "//") {
    double rest = std::fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0)) {
      rest += b;
    }
    return Value::number(operation == "%" ? rest : std::floor((a - rest) / b + 0.5));
  }
  return would_raise(operation);
}

}  // namespace

Value binary(std::string_view operation, const Value& left, const Value& right) {
  if (!left.known() || !right.known()) {
    return left.known() ? right : left;
  }
  if (left.is_number() && right.is_number()) {
    return left.kind == Kind::kReal || right.kind == Kind::kReal
               ? of_reals(operation, left.as_real(), right.as_real())
               : of_integers(operation, left, right);
  }
  if (operation == "+" && left.kind == Kind::kString && right.kind == Kind::kString &&
      left.text.size() + right.text.size() <= kLongestJoined) {
    return Value::string(left.text + right.text);
  }
  return would_raise(operation);
}

Value unary(std::string_view operation, const Value& operand) {
  if (!operand.is_number()) {
    return operand.known() ? would_raise(operation) : operand;
  }
  if (operand.kind == Kind::kReal) {
    return operation == "~" ? would_raise(operation)
                            : Value::number(operation == "-" ? -operand.real : operand.real);
  }
  if (operation == "-") {
    return operand.integer == INT64_MIN ? too_large() : Value::number(-operand.integer);
  }
  return Value::number(operation == "~" ? ~operand.integer : operand.integer);
}

std::optional<bool> plainly_equal(const Value& left, const Value& right) {
  const auto plain = [](const Value& value) {
    return value.is_number() || value.kind == Kind::kNone || value.kind == Kind::kString ||
           value.kind == Kind::kSequence;
  };
  if (!plain(left) || !plain(right)) {
    return std::nullopt;
  }
  if (left.is_number() && right.is_number()) {
    return left.kind == Kind::kReal || right.kind == Kind::kReal ? left.as_real() == right.as_real()
                                                                 : left.integer == right.integer;
  }
  if (left.kind != right.kind) {
    return false;
  }
  if (left.kind != Kind::kSequence) {
    return left.text == right.text;
  }
  if (left.text != right.text || left.items.size() != right.items.size()) {
    return false;
  }
  if (left.text == "set") {
    return std::nullopt;
  }
  bool equal = true;
  for (std::size_t i = 0; i < left.items.size(); ++i) {
    const auto one = plainly_equal(left.items[i], right.items[i]);
    if (!one) {
      return std::nullopt;
    }
    equal = equal && *one;
  }
  return equal;
}

std::optional<int> order(const Value& left, const Value& right) {
  const auto sign = [](auto a, auto b) { return a < b ? -1 : (b < a ? 1 : 0); };
  if (left.is_number() && right.is_number()) {
    if (left.kind != Kind::kReal && right.kind != Kind::kReal) {
      return sign(left.integer, right.integer);
    }
    const bool nan = std::isnan(left.as_real()) || std::isnan(right.as_real());
    return nan ? std::nullopt : std::optional(sign(left.as_real(), right.as_real()));
  }
  if (left.kind == Kind::kString && right.kind == Kind::kString) {
    return sign(left.text, right.text);  // UTF-8 sorts in code-point order
  }
  if (left.kind != Kind::kSequence || right.kind != Kind::kSequence || left.text != right.text ||
      left.text == "set") {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < std::min(left.items.size(), right.items.size()); ++i) {
    const auto one = order(left.items[i], right.items[i]);
    if (!one || *one != 0) {
      return one;
    }
  }
  return sign(left.items.size(), right.items.size());
}

}  // namespace ddpdoctor::values
