// SPDX-License-Identifier: Apache-2.0
// Truth, length, identity, equality, order, membership.
#include <algorithm>
#include <array>

#include "collector/stacks/python/containers.h"
#include "collector/stacks/python/object_flags.h"
#include "collector/values/arithmetic.h"
#include "collector/values/evaluator.h"

namespace ddpdoctor::values {

namespace {

using Kind = Value::Kind;

using stacks::kHeapType;
using stacks::kIntSubclass;
using stacks::kListSubclass;
using stacks::kStringSubclass;
using stacks::kTupleSubclass;
using stacks::kTypeSubclass;
constexpr std::size_t kMostCompared = 1024;
constexpr int kDeepestComparison = 4;

/// Objects of these types are true whatever they contain.
bool is_always_true(std::string_view type) {
  constexpr auto kTypes = std::to_array<std::string_view>(
      {"function", "method", "module", "builtin_function_or_method", "generator", "code",
       "coroutine", "method_descriptor", "functools.partial", "_thread.lock", "ellipsis"});
  return std::ranges::find(kTypes, type) != kTypes.end();
}

Value of(std::optional<bool> known, const char* why) {
  return known ? Value::boolean(*known) : Value::unknown(why);
}

}  // namespace

/// The object's class, or one of its bases, defines the method in Python.
bool Evaluator::has_python_method(RemoteAddress object, std::string_view method) {
  const RemoteAddress type = objects_.type_of(object);
  if ((objects_.flags_of_type(type) & kHeapType) == 0) {
    return false;
  }
  const auto found = attributes_.in_class(type, method);
  return found && objects_.type_name(*found) == "function";
}

/// All of its classes are written in Python, so C code decides neither truth nor equality.
bool Evaluator::is_python_all_through(RemoteAddress object) {
  const auto& classes = attributes_.order(objects_.type_of(object));
  return !classes.empty() && std::all_of(classes.begin(), classes.end(), [this](auto type) {
    return (objects_.flags_of_type(type) & kHeapType) != 0 ||
           objects_.class_name(type) == "object" || objects_.class_name(type) == "typing.Generic";
  });
}

/// Instances of subclasses of int and str, and one-element tensors, as plain values.
Value Evaluator::as_plain(const Value& value) {
  if (value.kind != Kind::kObject) {
    return value;
  }
  const std::uint64_t flags = objects_.type_flags(value.address);
  if ((flags & kIntSubclass) != 0) {
    if (const auto number = objects_.integer(value.address)) {
      return {.kind = Kind::kInteger, .integer = *number, .address = value.address};
    }
  } else if ((flags & kStringSubclass) != 0) {
    if (auto text = objects_.string(value.address)) {
      return {.kind = Kind::kString, .text = std::move(*text), .address = value.address};
    }
  } else if (tensor_item_) {
    if (auto item = tensor_item_(value.address)) {
      return *item;
    }
  }
  return value;
}

Value Evaluator::length(const Value& value, int depth) {
  if (!value.known()) {
    return value;
  }
  if (value.kind == Kind::kSequence && value.text != "generator") {
    return Value::number(static_cast<std::int64_t>(value.items.size()));
  }
  if (value.kind == Kind::kString && value.address == 0) {
    const auto characters = std::count_if(value.text.begin(), value.text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
    });
    return Value::number(static_cast<std::int64_t>(characters));
  }
  if (value.kind == Kind::kObject || value.kind == Kind::kString) {
    if (has_python_method(value.address, "__len__")) {
      const auto own = attributes_.in_class(objects_.type_of(value.address), "__len__");
      return call_function(*own, {value}, {}, depth);
    }
    const auto count = stacks::length_of(objects_, value.address);
    if (count) {
      return Value::number(static_cast<std::int64_t>(*count));
    }
  }
  return Value::unknown("a length that only running the code shows");
}

Value Evaluator::truth(const Value& value) {
  switch (value.kind) {
    case Kind::kUnknown:
      return value;
    case Kind::kNone:
      return Value::boolean(false);
    case Kind::kBool:
    case Kind::kInteger:
      return Value::boolean(value.integer != 0);
    case Kind::kReal:
      return Value::boolean(value.real != 0);
    case Kind::kString:
      return Value::boolean(!value.text.empty());
    case Kind::kSequence:  // a generator is true whatever it gives
      return Value::boolean(!value.items.empty() || value.text == "generator");
    case Kind::kMethod:
    case Kind::kBuiltinMethod:
    case Kind::kMade:  // its class defines neither __bool__ nor __len__
      return Value::boolean(true);
    case Kind::kObject:
      break;
  }
  const RemoteAddress type = objects_.type_of(value.address);
  const std::string type_name = objects_.type_name(value.address);
  if (has_python_method(value.address, "__bool__")) {
    return truth(call_function(*attributes_.in_class(type, "__bool__"), {value}, {}, 0));
  }
  if ((objects_.type_flags(value.address) & kIntSubclass) != 0) {
    return of(stacks::integer_truth(objects_, value.address), "a number that cannot be read");
  }
  const Value plain = as_plain(value);
  if (plain.kind != Kind::kObject) {
    return truth(plain);
  }
  if (has_python_method(value.address, "__len__") || stacks::length_of(objects_, value.address)) {
    const Value count = length(value, 0);
    return count.known() ? Value::boolean(count.integer != 0) : count;
  }
  const bool is_class = (objects_.type_flags(value.address) & kTypeSubclass) != 0;
  if (is_class || is_always_true(type_name) || is_python_all_through(value.address)) {
    return Value::boolean(true);
  }
  return Value::unknown("the truth of an object of class " + objects_.class_name(type));
}

Value Evaluator::identical(const Value& left, const Value& right) {
  const auto singleton = [](const Value& value) {
    return value.kind == Kind::kNone || value.kind == Kind::kBool;
  };
  if (left.kind != right.kind) {
    return Value::boolean(false);
  }
  if (singleton(left)) {
    return Value::boolean(left.kind == Kind::kNone || left.integer == right.integer);
  }
  if (left.address == 0 || right.address == 0 || left.kind == Kind::kMethod ||
      left.kind == Kind::kBuiltinMethod) {
    return Value::unknown("the identity of a computed value");
  }
  return Value::boolean(left.address == right.address);
}

/// "list" or "tuple", for computed sequences and objects, including subclasses; empty for others.
std::string_view Evaluator::sequence_kind(const Value& value) {
  if (value.kind == Kind::kSequence) {
    return value.text == "list" || value.text == "tuple" ? std::string_view(value.text)
                                                         : std::string_view();
  }
  const std::uint64_t flags =
      value.kind == Kind::kObject ? objects_.type_flags(value.address) : std::uint64_t{0};
  return (flags & kListSubclass) != 0 ? "list" : ((flags & kTupleSubclass) != 0 ? "tuple" : "");
}

std::optional<bool> Evaluator::equal(const Value& first, const Value& second, int depth) {
  if (depth > kDeepestComparison || !first.known() || !second.known()) {
    return std::nullopt;
  }
  const auto special = [this](const Value& value) {
    return value.kind == Kind::kObject && has_python_method(value.address, "__eq__");
  };
  if (special(first) || special(second)) {
    return std::nullopt;
  }
  const Value left = as_plain(first);
  const Value right = as_plain(second);
  if (const auto plain = plainly_equal(left, right)) {
    return plain;
  }
  if (left.address != 0 && left.address == right.address && left.kind == right.kind) {
    return true;
  }
  const std::string_view left_kind = sequence_kind(left);
  if (!left_kind.empty() && left_kind == sequence_kind(right)) {
    const auto ours = items(left, kMostCompared);
    const auto theirs = items(right, kMostCompared);
    if (!ours || !theirs || ours->size() == kMostCompared || theirs->size() == kMostCompared) {
      return std::nullopt;
    }
    if (ours->size() != theirs->size()) {
      return false;
    }
    for (std::size_t i = 0; i < ours->size(); ++i) {
      const auto same = equal((*ours)[i], (*theirs)[i], depth + 1);
      if (!same || !*same) {
        return same;
      }
    }
    return true;
  }
  // Objects compared by identity: classes, functions, objects without their own __eq__.
  const auto by_identity = [this](const Value& value) {
    return value.kind == Kind::kObject &&
           ((objects_.type_flags(value.address) & kTypeSubclass) != 0 ||
            is_always_true(objects_.type_name(value.address)) ||
            is_python_all_through(value.address));
  };
  const auto builtin = [this](const Value& value) { return is_builtin(value); };
  if ((by_identity(left) && (by_identity(right) || builtin(right))) ||
      (by_identity(right) && builtin(left))) {
    return false;
  }
  const bool none = left.kind == Kind::kNone || right.kind == Kind::kNone;
  return none && builtin(left) && builtin(right) ? std::optional(false) : std::nullopt;
}

std::optional<std::uint64_t> Evaluator::items_in(const Value& value) {
  if (value.kind == Kind::kSequence) {
    return value.items.size();
  }
  const bool builtin = value.kind == Kind::kObject && !has_python_method(value.address, "__iter__");
  return builtin ? stacks::length_of(objects_, value.address) : std::nullopt;
}

Value Evaluator::contains(const Value& container, const Value& item) {
  const Value inside = as_plain(container);
  if (inside.kind == Kind::kString) {
    const Value part = as_plain(item);
    return part.kind == Kind::kString
               ? Value::boolean(inside.text.find(part.text) != std::string::npos)
               : Value::unknown("`in` of a string");
  }
  if (container.kind == Kind::kObject) {
    if (is_environment(container.address)) {
      const Value found = environment_variable(container.address, item);
      return found.known() ? Value::boolean(found.kind != Kind::kNone) : found;
    }
    if (has_python_method(container.address, "__contains__") ||
        has_python_method(container.address, "__iter__")) {
      return Value::unknown("`in` of an object of class " +
                            objects_.class_name(objects_.type_of(container.address)));
    }
  }
  const auto all = items(container, kMostCompared);
  if (!all) {
    return Value::unknown("`in` of an object that is not a container");
  }
  bool unsure = all->size() == kMostCompared;
  for (const Value& one : *all) {
    const auto same = equal(one, item, 0);
    if (same && *same) {
      return Value::boolean(true);
    }
    unsure = unsure || !same;
  }
  return unsure ? Value::unknown("`in` of things that cannot be compared") : Value::boolean(false);
}

Value Evaluator::compare(std::string_view operation, const Value& left, const Value& right) {
  if (!left.known() || !right.known()) {
    return left.known() ? right : left;
  }
  if (operation == "is" || operation == "is not") {
    Value same = identical(left, right);
    return same.known() && operation == "is not" ? Value::boolean(same.integer == 0) : same;
  }
  if (operation == "in" || operation == "not in") {
    Value found = contains(right, left);
    return found.known() && operation == "not in" ? Value::boolean(found.integer == 0) : found;
  }
  if (operation == "==" || operation == "!=") {
    const auto same = equal(left, right, 0);
    return of(same ? std::optional(*same == (operation == "==")) : std::nullopt,
              "an equality that only running the code shows");
  }
  const Value a = as_plain(left);
  const Value b = as_plain(right);
  const auto sign = order(a, b);
  if (!sign) {  // every comparison with a NaN is false
    return a.is_number() && b.is_number()
               ? Value::boolean(false)
               : Value::unknown("an order that only running the code shows");
  }
  const bool holds = operation == "<"    ? *sign < 0
                     : operation == "<=" ? *sign <= 0
                     : operation == ">"  ? *sign > 0
                                         : *sign >= 0;
  return Value::boolean(holds);
}

}  // namespace ddpdoctor::values
