// SPDX-License-Identifier: Apache-2.0
// Evaluates value.name and value[key].
#include <algorithm>
#include <array>

#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/containers.h"
#include "collector/stacks/python/object_flags.h"
#include "collector/stacks/python/value_layout.h"
#include "collector/values/evaluator.h"

namespace ddpdoctor::values {

namespace {

using Kind = Value::Kind;

constexpr std::size_t kMostAttributes = 4096;
constexpr int kMostMaking = 4;  // nesting depth of functions and objects under construction
constexpr std::size_t kMostVariables = 4096;
using stacks::kDictSubclass;

/// Types of the language whose methods are known by name.
bool is_builtin_type(std::string_view type) {
  constexpr auto kTypes = std::to_array<std::string_view>(
      {"str", "bytes", "int", "float", "bool", "NoneType", "dict", "list", "tuple", "set",
       "frozenset", "collections.deque", "collections.OrderedDict", "collections.defaultdict",
       "range"});
  return std::ranges::find(kTypes, type) != kTypes.end();
}

std::string no_attribute(const std::string& type, const std::string& name) {
  return "an object of class " + type + " has no attribute `" + name + "`";
}

}  // namespace

bool Evaluator::is_builtin(const Value& value) {
  if (value.kind == Kind::kMethod || value.kind == Kind::kMade || !value.known()) {
    return false;
  }
  return value.kind != Kind::kObject || is_builtin_type(objects_.type_name(value.address));
}

/// An object of a user's class whose __init__ only stores its arguments: `Policy(step, loss).stop`.
/// Nothing if the class does more.
std::optional<Value> Evaluator::make(RemoteAddress type, std::vector<Value> arguments,
                                     std::vector<std::string> keywords, int depth) {
  constexpr auto kOthers =
      std::to_array<std::string_view>({"__new__", "__getattribute__", "__getattr__", "__setattr__",
                                       "__bool__", "__len__", "__eq__"});
  const bool more = std::any_of(kOthers.begin(), kOthers.end(), [&](std::string_view method) {
    const auto own = attributes_.in_class(type, method);
    const std::string kind = own ? objects_.type_name(*own) : std::string();
    return kind == "function" || kind == "staticmethod";  // the object's methods are written in C
  });
  const auto init = attributes_.in_class(type, "__init__");
  const auto parts = init ? stacks::function_parts(objects_, *init) : std::nullopt;
  if (more || !parts || !bodies_ || objects_.type_name(type) != "type" || entered_ >= kMostMaking) {
    return std::nullopt;
  }
  arguments.insert(arguments.begin(), Value::unknown("it is being made"));
  keywords.insert(keywords.begin(), std::string());
  Entry entry = entry_of(*parts, std::move(arguments), keywords);
  const Expression* body = bodies_(entry.file, entry.first_line, entry.name);
  if (body == nullptr || body->kind != Expression::Kind::kMade) {
    return std::nullopt;
  }
  Value made{.kind = Kind::kMade, .type = type};
  Names names{.scope = &entry.scope, .bound = std::move(entry.bound)};
  ++entered_;
  for (std::size_t i = 0; i < body->parts.size(); ++i) {
    made.items.push_back(Value::string(body->words[i]));
    made.items.push_back(node(body->parts[i], names, depth + 1));
  }
  --entered_;
  return made;
}

/// Its own last value, else what its class defines: a property, a method, a value.
Value Evaluator::attribute_of_made(const Value& of, const std::string& name, int depth) {
  for (std::size_t i = of.items.size(); i >= 2; i -= 2) {
    if (of.items[i - 2].text == name) {
      return of.items[i - 1];
    }
  }
  const auto found = attributes_.in_class(of.type, name);
  if (!found) {
    return Value::unknown(no_attribute(objects_.class_name(of.type), name));
  }
  const std::string kind = objects_.type_name(*found);
  if (kind == "property") {
    const RemoteAddress getter =
        stacks::pointer(objects_.memory(), stacks::at(*found, stacks::value_layout::kFirstField));
    return call_function(getter, {of}, {}, depth);
  }
  if (kind == "function") {
    return {.kind = Kind::kMethod, .address = *found, .items = {of}};
  }
  Value plain = load(*found);
  return is_builtin(plain) ? plain : Value::unknown("`" + name + "` of a class");
}

Value Evaluator::attribute(const Value& of, const std::string& name, int depth) {
  read_.insert(name);
  if (!of.known()) {
    return of;
  }
  if (of.kind == Kind::kMethod || of.kind == Kind::kBuiltinMethod) {
    return Value::unknown("an attribute of a method");
  }
  if (of.kind == Kind::kMade) {
    return attribute_of_made(of, name, depth);
  }
  if (is_builtin(of)) {
    return {.kind = Kind::kBuiltinMethod, .text = name, .items = {of}};
  }
  const stacks::Attribute found = attributes_.find(of.address, name);
  switch (found.kind) {
    case stacks::Attribute::Kind::kValue:
      return load(found.value);
    case stacks::Attribute::Kind::kMethod:
      if (objects_.type_name(found.value) != "function") {
        return {.kind = Kind::kBuiltinMethod, .text = name, .items = {of}};
      }
      return {.kind = Kind::kMethod, .address = found.value, .items = {of}};
    case stacks::Attribute::Kind::kProperty:
      return call_function(found.value, {of}, {}, depth);
    case stacks::Attribute::Kind::kUnknown:
      // Methods of torch's tensors are written in C; the known ones are evaluated by name.
      if (tensor_item_ && tensor_item_(of.address)) {
        return {.kind = Kind::kBuiltinMethod, .text = name, .items = {of}};
      }
      return Value::unknown("`" + name + "`: " + found.reason);
    case stacks::Attribute::Kind::kAbsent:
      break;
  }
  return Value::unknown(no_attribute(objects_.class_name(objects_.type_of(of.address)), name));
}

std::optional<std::vector<Value>> Evaluator::items(const Value& value, std::size_t limit) {
  if (value.kind == Kind::kSequence) {
    return value.items;
  }
  if (value.kind != Kind::kObject) {
    return std::nullopt;
  }
  const auto addresses = stacks::items_of(objects_, value.address, limit);
  if (!addresses) {
    return std::nullopt;
  }
  std::vector<Value> out;
  out.reserve(addresses->size());
  for (const RemoteAddress address : *addresses) {
    out.push_back(load(address));
  }
  return out;
}

/// os.environ: an object defined in os.py around a dict of bytes.
bool Evaluator::is_environment(RemoteAddress object) {
  const RemoteAddress type = objects_.type_of(object);
  return objects_.class_name(type) == "_Environ" && attributes_.module_of(type) == "os";
}

Value Evaluator::environment_variable(RemoteAddress environ, const Value& key) {
  const auto data = objects_.attribute(environ, "_data");
  if (key.kind != Kind::kString || !data) {
    return Value::unknown("an environment variable that cannot be read");
  }
  for (const auto& [name, value] : objects_.items(*data, kMostVariables)) {
    if (objects_.bytes(name, key.text.size() + 1) == key.text) {
      const auto text = objects_.bytes(value, 4096);
      return text ? Value::string(*text) : Value::unknown("an environment variable");
    }
  }
  return Value::none();
}

Value Evaluator::item_of_dict(RemoteAddress dict, const Value& key) {
  if (key.kind == Kind::kString) {
    const auto found = objects_.item(dict, key.text);
    return found ? load(*found) : Value{.kind = Kind::kUnknown, .text = "a key that is not there"};
  }
  for (const auto& [own, value] : objects_.items(dict, kMostAttributes)) {
    const auto same = equal(load(own), key, 0);
    if (!same) {
      return Value::unknown("keys that cannot be compared");
    }
    if (*same) {
      return load(value);
    }
  }
  return Value::unknown("a key that is not there");
}

Value Evaluator::subscript(const Value& of, const Value& key) {
  if (!of.known() || !key.known()) {
    return of.known() ? key : of;
  }
  if (of.kind == Kind::kObject && is_environment(of.address)) {
    Value found = environment_variable(of.address, key);
    return found.kind == Kind::kNone ? Value::unknown("an environment variable that is not set")
                                     : found;
  }
  const bool object = of.kind == Kind::kObject;
  if (object && has_python_method(of.address, "__getitem__")) {
    return Value::unknown("items of class " + objects_.class_name(objects_.type_of(of.address)));
  }
  if (object && (objects_.type_flags(of.address) & kDictSubclass) != 0) {
    return item_of_dict(of.address, key);
  }
  const Value index = as_plain(key);
  const auto all = items(of, kMostAttributes);
  const auto count = length(of, 0);
  if (!all || (index.kind != Kind::kInteger && index.kind != Kind::kBool) || !count.known() ||
      (object && !is_builtin(of) && !stacks::length_of(objects_, of.address))) {
    return Value::unknown("an item of a " +
                          (object ? objects_.type_name(of.address) : std::string("value")));
  }
  const std::int64_t place = index.integer < 0 ? index.integer + count.integer : index.integer;
  if (place < 0 || place >= static_cast<std::int64_t>(all->size())) {
    return Value::unknown("an item that is not there");
  }
  return (*all)[static_cast<std::size_t>(place)];
}

}  // namespace ddpdoctor::values
