// SPDX-License-Identifier: Apache-2.0
// Calls of Python's builtins: functions, types, methods of strings and dicts.
#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/lower.h"
#include "base/text.h"
#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/object_flags.h"
#include "collector/stacks/python/value_layout.h"
#include "collector/values/arithmetic.h"
#include "collector/values/evaluator.h"

namespace ddpdoctor::values {

namespace {

using Kind = Value::Kind;
namespace layout = stacks::value_layout;

constexpr std::size_t kMostItems = 1024;
using stacks::kTypeSubclass;

/// The integer in a text, by the rules of int().
Value parsed_integer(std::string_view text) {
  text = base::trim(text);
  const bool plus = text.starts_with('+');
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + (plus ? 1 : 0), end, value);
  return error == std::errc() && stop == end && !text.empty()
             ? Value::number(value)
             : Value::unknown("int() of a text that is not a number");
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

Value method_of_string(const std::string& name, const std::string& self,
                       const std::vector<Value>& arguments) {
  const bool one = arguments.size() == 1 && arguments[0].kind == Kind::kString;
  if (one && name == "startswith") {
    return Value::boolean(self.starts_with(arguments[0].text));
  }
  if (one && name == "endswith") {
    return Value::boolean(self.ends_with(arguments[0].text));
  }
  if (arguments.empty() && name == "strip") {
    return Value::string(std::string(base::trim(self)));
  }
  if (arguments.empty() && is_ascii(self) && (name == "lower" || name == "casefold")) {
    return Value::string(base::lower(self));
  }
  if (arguments.empty() && is_ascii(self) && name == "upper") {
    std::string text = self;
    for (char& c : text) {
      c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    }
    return Value::string(std::move(text));
  }
  if (arguments.empty() && is_ascii(self) && name == "isdigit") {
    return Value::boolean(!self.empty() &&
                          std::ranges::all_of(self, [](char c) { return c >= '0' && c <= '9'; }));
  }
  return Value::unknown("it calls str." + name);
}

/// The smallest or largest of plain values.
Value extreme(const std::vector<Value>& all, bool largest) {
  if (all.empty()) {
    return Value::unknown("the smallest of no values");
  }
  Value best = all.front();
  for (const Value& one : all) {
    const auto sign = order(one, best);
    if (!sign) {
      return Value::unknown("an order that only running the code shows");
    }
    if (*sign != 0 && (*sign > 0) == largest) {
      best = one;
    }
  }
  return best;
}

}  // namespace

Value Evaluator::is_instance(const Value& value, const Value& type) {
  if (type.kind == Kind::kSequence ||
      (type.kind == Kind::kObject && objects_.type_name(type.address) == "tuple")) {
    Value result = Value::boolean(false);
    for (const Value& one : items(type, kMostItems).value_or(std::vector<Value>())) {
      result = is_instance(value, one);
      if (!result.known() || result.integer != 0) {
        return result;
      }
    }
    return result;
  }
  const bool is_class =
      type.kind == Kind::kObject && (objects_.type_flags(type.address) & kTypeSubclass) != 0 &&
      objects_.type_name(type.address) == "type";  // no metaclass that could decide otherwise
  if (!is_class || value.address == 0 || value.kind == Kind::kMethod) {
    return Value::unknown("it calls isinstance");
  }
  const auto& classes = attributes_.order(objects_.type_of(value.address));
  return Value::boolean(std::find(classes.begin(), classes.end(), type.address) != classes.end());
}

std::pair<std::string, std::string> Evaluator::builtin_function(RemoteAddress function) {
  if (objects_.type_name(function) != "builtin_function_or_method") {
    return {};
  }
  stacks::RemoteMemory& memory = objects_.memory();
  const RemoteAddress definition =
      stacks::pointer(memory, stacks::at(function, layout::kBuiltinDefinition));
  const RemoteAddress module =
      stacks::pointer(memory, stacks::at(function, layout::kBuiltinModule));
  return {objects_.string(module, 64).value_or(""),
          memory.c_string(stacks::pointer(memory, definition), 64).value_or("")};
}

Value Evaluator::call_builtin(RemoteAddress function, const std::vector<Value>& arguments,
                              int depth) {
  const auto [module, name] = builtin_function(function);
  const std::size_t count = arguments.size();
  if (module == "builtins" && count == 1) {
    const Value& only = arguments[0];
    if (name == "len") {
      return length(only, depth);
    }
    const Value plain = as_plain(only);
    if (name == "abs" && plain.is_number()) {
      return plain.as_real() < 0 ? unary("-", plain) : unary("+", plain);
    }
    if (name == "callable" && (only.kind == Kind::kMethod || only.kind == Kind::kBuiltinMethod)) {
      return Value::boolean(true);
    }
    const auto all = items(only, kMostItems);
    if (name == "any" || name == "all") {
      return any_or_all(only, name == "any");
    }
    if (name == "sum") {
      return sum(only);
    }
    if ((name == "max" || name == "min") && all && all->size() < kMostItems) {
      return extreme(*all, name == "max");
    }
  }
  if (module == "builtins" && count >= 2) {
    if (name == "isinstance" && count == 2) {
      return is_instance(arguments[0], arguments[1]);
    }
    const bool named = arguments[1].kind == Kind::kString;
    if (name == "getattr" && named) {
      Value found = attribute(arguments[0], arguments[1].text, depth);
      const bool absent = found.text.find("has no attribute") != std::string::npos;
      return !found.known() && absent && count == 3 ? arguments[2] : found;
    }
    if (name == "hasattr" && named && count == 2) {
      const Value found = attribute(arguments[0], arguments[1].text, depth);
      const bool absent = found.text.find("has no attribute") != std::string::npos;
      return found.known() || absent ? Value::boolean(found.known()) : found;
    }
    if (name == "max" || name == "min") {
      return extreme(arguments, name == "max");
    }
  }
  if (module == "math" && count == 1 && arguments[0].is_number()) {
    const double number = arguments[0].as_real();
    if (name == "isnan" || name == "isinf" || name == "isfinite") {
      return Value::boolean(name == "isnan"   ? std::isnan(number)
                            : name == "isinf" ? std::isinf(number)
                                              : std::isfinite(number));
    }
  }
  if (auto answer = file_answer(module, name, arguments)) {
    return *answer;
  }
  return Value::unknown(call_reason(module, name.empty() ? "a function written in C" : name));
}

Value Evaluator::call_class(RemoteAddress type, const std::vector<Value>& arguments) {
  const std::string name = objects_.class_name(type);
  if (arguments.size() == 1 && objects_.type_name(type) == "type") {
    const Value plain = as_plain(arguments[0]);
    if (name == "bool") {
      return truth(arguments[0]);
    }
    if (name == "int" && plain.kind == Kind::kString) {
      return parsed_integer(plain.text);
    }
    if (name == "int" && plain.is_number() && std::fabs(plain.as_real()) < 9e18) {
      return Value::number(plain.kind == Kind::kReal ? static_cast<std::int64_t>(plain.real)
                                                     : plain.integer);
    }
    if (name == "float" && plain.is_number()) {
      return Value::number(plain.as_real());
    }
    if (name == "str" && plain.kind == Kind::kString) {
      return plain;
    }
    if (name == "str" && plain.kind == Kind::kInteger) {
      return Value::string(fmt::format("{}", plain.integer));
    }
    if (name == "type") {
      return arguments[0].address != 0 ? load(objects_.type_of(arguments[0].address))
                                       : Value::unknown("the class of a computed value");
    }
    if (name == "list" || name == "tuple" || name == "set" || name == "frozenset") {
      auto all = items(arguments[0], kMostItems);
      const bool unlike = name == "set" || name == "frozenset";  // equal items would merge into one
      const bool known = all && std::ranges::all_of(*all, &Value::known);
      if (known && all->size() < kMostItems && !unlike) {
        return Value::sequence(name, std::move(*all));
      }
    }
  }
  auto over = objects_.type_name(type) == "type" ? iterated(name, arguments) : std::nullopt;
  return over ? std::move(*over) : Value::unknown("it makes an object of class " + name);
}

Value Evaluator::call_method_of_builtin(const std::string& name, const Value& self,
                                        const std::vector<Value>& arguments) {
  const Value plain = as_plain(self);
  if (self.kind == Kind::kSequence && self.text == "path" && arguments.empty()) {
    auto answer = file_answer("pathlib", name, {self});
    return answer ? std::move(*answer) : Value::unknown("it calls " + name);
  }
  if (plain.kind == Kind::kString) {
    return method_of_string(name, plain.text, arguments);
  }
  if (self.kind == Kind::kObject && plain.is_number() && arguments.empty()) {
    if (name == "item" || name == "sum" || name == "max" || name == "min") {
      return plain;  // for a tensor with one element
    }
    if (name == "any" || name == "all") {
      return truth(plain);
    }
  }
  if (self.kind == Kind::kObject &&
      objects_.type_name(self.address).find("dict") != std::string::npos) {
    if (name == "get" && !arguments.empty() && arguments.size() <= 2) {
      Value found = item_of_dict(self.address, arguments[0]);
      const bool absent = found.text == "a key that is not there";
      return !found.known() && absent ? (arguments.size() == 2 ? arguments[1] : Value::none())
                                      : found;
    }
    if (name == "keys" && arguments.empty()) {
      auto keys = items(self, kMostItems);
      return keys ? Value::sequence("list", std::move(*keys)) : Value::unknown("it calls keys");
    }
    if ((name == "values" || name == "items") && arguments.empty()) {
      std::vector<Value> all;
      for (const auto& [key, value] : objects_.items(self.address, kMostItems)) {
        all.push_back(name == "values" ? load(value)
                                       : Value::sequence("tuple", {load(key), load(value)}));
      }
      return Value::sequence("list", std::move(all));
    }
  }
  return Value::unknown("it calls " + name);
}

}  // namespace ddpdoctor::values
