// SPDX-License-Identifier: Apache-2.0
// Reads results that functools.lru_cache has stored. The wrapper's dict has them by the argument (a
// single int or str) or by the tuple of arguments. The layout is that of
// Modules/_functoolsmodule.c, the same in CPython 3.8 to 3.14; the types of all objects are checked
// before their fields are used.
#include <algorithm>

#include "collector/stacks/python/addresses.h"
#include "collector/values/evaluator.h"

namespace ddpdoctor::values {

namespace {

using Kind = Value::Kind;

constexpr std::int64_t kCache = 72;       // lru_cache_object.cache
constexpr std::int64_t kFunction = 88;    // lru_cache_object.func
constexpr std::int64_t kLinkAnswer = 48;  // lru_list_elem.result
constexpr std::size_t kMostAnswers = 1024;

}  // namespace

bool Evaluator::is_cached_for(RemoteAddress key, const std::vector<Value>& arguments) {
  const std::string type = objects_.type_name(key);
  const auto same = [this](RemoteAddress kept, const Value& given) {
    return equal(load(kept), given, 0).value_or(false);
  };
  if (type == "int" || type == "str") {
    return arguments.size() == 1 && same(key, arguments[0]);
  }
  if (type != "tuple") {
    return false;
  }
  const auto parts = objects_.elements(key, arguments.size() + 1);
  return parts.size() == arguments.size() &&
         std::equal(parts.begin(), parts.end(), arguments.begin(), same);
}

Value Evaluator::call_cached(RemoteAddress wrapper, std::vector<Value> arguments, int depth) {
  const auto field = [this](RemoteAddress object, std::int64_t offset) {
    return stacks::pointer(objects_.memory(), stacks::at(object, offset));
  };
  const RemoteAddress cache = field(wrapper, kCache);
  const RemoteAddress function = field(wrapper, kFunction);
  if (objects_.type_name(cache) != "dict" || objects_.type_name(function) != "function") {
    return Value::unknown("it calls a function whose kept answers cannot be read");
  }
  for (const auto& [key, kept] : objects_.items(cache, kMostAnswers)) {
    if (is_cached_for(key, arguments)) {
      const bool linked = objects_.type_name(kept) == "functools._lru_list_elem";
      return load(linked ? field(kept, kLinkAnswer) : kept);
    }
  }
  Value worked_out = call_function(function, std::move(arguments), {}, depth);
  return worked_out.known()
             ? worked_out
             : Value::unknown(worked_out.text + "; it keeps no answer for these arguments");
}

}  // namespace ddpdoctor::values
