// SPDX-License-Identifier: Apache-2.0
// Evaluates comprehensions and the builtins that use all items of an iterable: any, all, sum,
// range, enumerate, zip. Single items of a generator may be unknown: `any` is still true if one
// item is true.
#include <algorithm>

#include "collector/values/arithmetic.h"
#include "collector/values/evaluator.h"

namespace ddpdoctor::values {

namespace {

using Kind = Value::Kind;

constexpr std::size_t kMostComprehended = 256;

}  // namespace

Value Evaluator::comprehension(const Expression& expression, Names& names, int depth) {
  const Value over = node(expression.parts[1], names, depth + 1);
  if (!over.known()) {
    return over;
  }
  const bool own_iteration =
      over.kind == Kind::kObject && has_python_method(over.address, "__iter__");
  const auto all = own_iteration ? std::nullopt : items(over, kMostComprehended + 1);
  if (!all || all->size() > kMostComprehended) {
    return Value::unknown("a comprehension over what only running code goes over");
  }
  Names inner{.scope = names.scope, .bound = names.bound};
  std::vector<Value> made;
  for (const Value& item : *all) {
    const auto pieces = expression.words.size() > 1 ? items(item, kMostComprehended) : std::nullopt;
    if (expression.words.size() > 1 && (!pieces || pieces->size() != expression.words.size())) {
      return Value::unknown("a comprehension over what cannot be unpacked here");
    }
    for (std::size_t i = 0; i < expression.words.size(); ++i) {
      inner.bound.insert_or_assign(expression.words[i], pieces ? (*pieces)[i] : item);
    }
    bool wanted = true;
    for (std::size_t test = 2; test < expression.parts.size() && wanted; ++test) {
      Value decided = truth(node(expression.parts[test], inner, depth + 1));
      if (!decided.known()) {
        return decided;
      }
      wanted = decided.integer != 0;
    }
    if (wanted) {
      made.push_back(node(expression.parts[0], inner, depth + 1));
      if (!made.back().known() && expression.text != "generator") {
        return made.back();
      }
    }
  }
  if (expression.text == "set") {  // duplicate items are not removed here
    return Value::unknown("a set that is made here");
  }
  return Value::sequence(expression.text, std::move(made));
}

Value Evaluator::any_or_all(const Value& of, bool any) {
  const auto all = items(of, kMostComprehended + 1);
  if (!all || all->size() > kMostComprehended) {
    return Value::unknown(any ? "it calls any" : "it calls all");
  }
  Value open = Value::boolean(!any);
  for (const Value& one : *all) {
    Value decided = truth(one);
    if (decided.known() && (decided.integer != 0) == any) {
      return Value::boolean(any);
    }
    open = decided.known() || !open.known() ? open : std::move(decided);
  }
  return open;
}

Value Evaluator::sum(const Value& of) {
  const auto all = items(of, kMostComprehended + 1);
  Value total = Value::number(std::int64_t{0});
  if (!all || all->size() > kMostComprehended) {
    return Value::unknown("it calls sum");
  }
  for (const Value& one : *all) {
    total = binary("+", total, as_plain(one));
    if (!total.known()) {
      return total;
    }
  }
  return total;
}

/// The items of a range, enumerate or zip object.
std::optional<Value> Evaluator::iterated(const std::string& type,
                                         const std::vector<Value>& arguments) {
  std::vector<Value> out;
  if (type == "range") {
    std::vector<std::int64_t> bounds;
    for (const Value& one : arguments) {
      const Value plain = as_plain(one);
      if (plain.kind != Kind::kInteger) {
        return std::nullopt;
      }
      bounds.push_back(plain.integer);
    }
    if (bounds.empty() || bounds.size() > 2) {
      return std::nullopt;
    }
    const std::int64_t first = bounds.size() == 2 ? bounds[0] : 0;
    const std::int64_t end = bounds.back();
    constexpr std::int64_t kFar = std::int64_t{1} << 60U;
    if (first < -kFar || end > kFar || end - first > static_cast<std::int64_t>(kMostComprehended)) {
      return std::nullopt;
    }
    for (std::int64_t i = first; i < end; ++i) {
      out.push_back(Value::number(i));
    }
    return Value::sequence("range", std::move(out));
  }
  if (type != "enumerate" && type != "zip") {
    return std::nullopt;
  }
  std::vector<std::vector<Value>> columns;
  std::size_t count = kMostComprehended + 1;
  for (const Value& one : arguments) {
    auto column = items(one, kMostComprehended + 1);
    if (!column || column->size() > kMostComprehended ||
        (type == "enumerate" && arguments.size() > 1)) {
      return std::nullopt;
    }
    count = std::min(count, column->size());
    columns.push_back(std::move(*column));
  }
  for (std::size_t i = 0; i < count && !columns.empty(); ++i) {
    std::vector<Value> row;
    if (type == "enumerate") {
      row.push_back(Value::number(static_cast<std::int64_t>(i)));
    }
    for (const auto& column : columns) {
      row.push_back(column[i]);
    }
    out.push_back(Value::sequence("tuple", std::move(row)));
  }
  return Value::sequence("generator", std::move(out));
}

}  // namespace ddpdoctor::values
