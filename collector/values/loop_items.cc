// SPDX-License-Identifier: Apache-2.0
#include "collector/values/loop_items.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace ddpdoctor::values {

namespace {

using ExpressionKind = Expression::Kind;

constexpr int kDeepestLoop = 6;  // nesting depth of iterables
constexpr std::int64_t kMostLooped = std::int64_t{1} << 40U;
constexpr std::string_view kIt = "it";

Expression it() {
  return {.kind = ExpressionKind::kName, .text = std::string(kIt)};
}

Expression attribute_of_it(std::string_view name) {
  return {.kind = ExpressionKind::kAttribute, .text = std::string(name), .parts = {it()}};
}

std::optional<std::int64_t> count_in(const Value& value) {
  const bool integer = value.kind == Value::Kind::kInteger || value.kind == Value::Kind::kBool;
  return integer && value.integer >= 0 && value.integer < kMostLooped ? std::optional(value.integer)
                                                                      : std::nullopt;
}

/// An argument by position, if no earlier one has a keyword or a star.
const Expression* argument(const Expression& call, std::size_t index) {
  for (std::size_t i = 0; i <= index && i < call.words.size(); ++i) {
    if (!call.words[i].empty()) {
      return nullptr;
    }
  }
  return index + 1 < call.parts.size() ? &call.parts[index + 1] : nullptr;
}

/// Names that an expression reads, without the parameters.
void names_in(const Expression& expression, const Names& names, std::set<std::string>& out) {
  if (expression.kind == ExpressionKind::kName && !names.bound.contains(expression.text)) {
    out.insert(expression.text);
  }
  for (const Expression& part : expression.parts) {
    names_in(part, names, out);
  }
}

}  // namespace

Value LoopItems::ask(const Expression& expression, const Value& of) {
  Names names;
  names.bound.emplace(kIt, of);
  return evaluate(expression, names);
}

Value LoopItems::evaluate(const Expression& expression, Names& names) {
  Value value = evaluator_.evaluate(expression, names);
  read_.insert(evaluator_.read().begin(), evaluator_.read().end());
  only_now_ = only_now_ || !evaluator_.only_now().empty();
  return value;
}

std::optional<std::int64_t> LoopItems::of_range(const Expression& call, Names& names) {
  std::vector<std::int64_t> bounds;
  for (std::size_t i = 1; i < call.parts.size(); ++i) {
    const Value bound = evaluate(call.parts[i], names);
    if (argument(call, i - 1) == nullptr || bound.kind != Value::Kind::kInteger ||
        bound.integer <= -kMostLooped || bound.integer >= kMostLooped) {
      return std::nullopt;
    }
    bounds.push_back(bound.integer);
  }
  if (bounds.empty() || bounds.size() > 3) {
    return std::nullopt;
  }
  const std::int64_t begin = bounds.size() == 1 ? 0 : bounds[0];
  const std::int64_t end = bounds.size() == 1 ? bounds[0] : bounds[1];
  const std::int64_t step = bounds.size() == 3 ? bounds[2] : 1;
  if (step == 0) {
    return std::nullopt;
  }
  const std::int64_t way = step > 0 ? end - begin : begin - end;
  const std::int64_t stride = step > 0 ? step : -step;
  return way <= 0 ? 0 : (way + stride - 1) / stride;
}

std::optional<std::int64_t> LoopItems::shortest(const Expression& call, Names& names, int depth) {
  std::optional<std::int64_t> least;
  for (std::size_t i = 1; i < call.parts.size(); ++i) {
    const auto one =
        argument(call, i - 1) == nullptr ? std::nullopt : of_part(call.parts[i], names, depth + 1);
    if (!one) {
      return std::nullopt;
    }
    least = least ? std::min(*least, *one) : *one;
  }
  return least;
}

/// islice(items, stop).
std::optional<std::int64_t> LoopItems::slice(const Expression& call, Names& names, int depth) {
  const Expression* items = argument(call, 0);
  const Expression* stop = argument(call, 1);
  if (items == nullptr || stop == nullptr || call.parts.size() != 3) {
    return std::nullopt;
  }
  const auto all = of_part(*items, names, depth + 1);
  const auto most = count_in(evaluate(*stop, names));
  return all && most ? std::optional(std::min(*all, *most)) : std::nullopt;
}

/// A function of the user's that yields one value for each item of an iterable, or an `__iter__`
/// that returns the iterator of one.
std::optional<std::int64_t> LoopItems::of_generator(const Expression& call, Names& names,
                                                    int depth) {
  auto entry = evaluator_.enter(call, names, [](std::size_t, Value value) { return value; });
  const Expression* body = entry ? evaluator_.body_of(*entry) : nullptr;
  if (body == nullptr ||
      (body->kind != ExpressionKind::kYielded && body->kind != ExpressionKind::kCall)) {
    return std::nullopt;
  }
  const Expression& over = body->kind == ExpressionKind::kYielded ? body->parts[0] : *body;
  Names inside{.scope = &entry->scope, .bound = std::move(entry->bound)};
  names_in(over, inside, read_);
  return of_part(over, inside, depth + 1);
}

/// Classes and functions that pass on the items of an argument, identified by the called object.
std::optional<std::int64_t> LoopItems::of_call(const Expression& call, Names& names, int depth) {
  const Value callee = evaluate(call.parts[0], names);
  const Expression* first = argument(call, 0);
  const bool is_class = callee.kind == Value::Kind::kObject && callee.address != 0 &&
                        objects_.type_name(callee.address) == "type";
  const std::string module =
      is_class ? evaluator_.attributes().module_of(callee.address) : std::string();
  const bool builtin = is_class && (module.empty() || module == "itertools");
  const std::string name = builtin ? objects_.class_name(callee.address) : std::string();
  if (name == "range") {
    return of_range(call, names);
  }
  if (name == "zip") {
    return shortest(call, names, depth);
  }
  if (name == "itertools.islice" || name == "islice") {
    return slice(call, names, depth);
  }
  const auto function = callee.kind == Value::Kind::kObject
                            ? evaluator_.builtin_function(callee.address)
                            : std::pair<std::string, std::string>();
  const bool hands_on =
      name == "enumerate" || name == "reversed" ||
      (function.first == "builtins" &&
       (function.second == "sorted" || function.second == "iter")) ||
      (is_class && evaluator_.attributes().derives_from(callee.address, "tqdm.std", "tqdm"));
  if (hands_on && first != nullptr) {
    return of_part(*first, names, depth + 1);
  }
  const bool method_of_dict =
      callee.kind == Value::Kind::kBuiltinMethod && call.parts.size() == 1 &&
      (callee.text == "items" || callee.text == "keys" || callee.text == "values");
  if (method_of_dict) {
    return of_value(callee.items[0], depth + 1);
  }
  const auto generated = of_generator(call, names, depth);
  return generated ? generated : of_value(evaluate(call, names), depth + 1);
}

std::optional<std::int64_t> LoopItems::of_part(const Expression& part, Names& names, int depth) {
  if (depth > kDeepestLoop) {
    return std::nullopt;
  }
  return part.kind == ExpressionKind::kCall && !part.parts.empty()
             ? of_call(part, names, depth)
             : of_value(evaluate(part, names), depth);
}

std::optional<std::int64_t> LoopItems::of_value(const Value& value, int depth) {
  if (!value.known() || depth > kDeepestLoop) {
    return std::nullopt;
  }
  if (const auto items = evaluator_.items_in(value)) {
    return static_cast<std::int64_t>(*items);
  }
  if (value.kind != Value::Kind::kObject) {
    return std::nullopt;
  }
  stacks::Attributes& attributes = evaluator_.attributes();
  const RemoteAddress type = objects_.type_of(value.address);
  if (attributes.derives_from(type, "tqdm.std", "tqdm")) {
    return of_value(ask(attribute_of_it("iterable"), value), depth + 1);
  }
  if (attributes.derives_from(type, "torch.utils.data.dataloader", "DataLoader")) {
    constexpr std::int64_t kMap = 0;  // an iterable dataset can end at any time
    const bool counted = count_in(ask(attribute_of_it("_dataset_kind"), value)) == kMap;
    return counted ? of_value(ask(attribute_of_it("_index_sampler"), value), depth + 1)
                   : std::nullopt;
  }
  // A user's own sampler may yield a number of items that differs from its __len__.
  const bool of_torch = attributes.module_of(type).starts_with("torch.utils.data.");
  if (of_torch) {
    return count_in(evaluator_.length_of(value));
  }
  Names names;
  names.bound.emplace(kIt, value);
  const Expression iterates{.kind = ExpressionKind::kCall, .parts = {attribute_of_it("__iter__")}};
  return of_generator(iterates, names, depth);
}

std::optional<std::int64_t> LoopItems::of(const Expression& iterable, Names& names) {
  read_.clear();
  only_now_ = false;
  const auto items = of_part(iterable, names, 0);
  return only_now_ ? std::nullopt : items;
}

}  // namespace ddpdoctor::values
