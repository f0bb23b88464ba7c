// SPDX-License-Identifier: Apache-2.0
// Functions as values: what they are called, where they are, what holds them.
#include "base/text.h"
#include "collector/stacks/python/addresses.h"
#include "collector/values/evaluator.h"

namespace ddpdoctor::values {

/// A library's wrapper around a function of the user's is that function.
model::CallSite Evaluator::reached_function(RemoteAddress function) {
  auto parts = user_function(function);
  if (!parts) {
    parts = stacks::function_parts(objects_, function);
  }
  if (!parts) {
    return {};
  }
  const std::string name = base::printable(parts->qualname);
  const std::size_t local = name.rfind("<locals>.");
  const std::string shown = local == std::string::npos ? name : name.substr(local + 9);
  const auto line = objects_.memory().get<std::int32_t>(
      stacks::at(parts->code, objects_.layout().code_first_line));
  return {.file = file_of(*parts), .line = line.value_or(0), .function = shown};
}

std::optional<std::vector<Value>> Evaluator::elements(const Value& value, std::size_t limit) {
  const Value count = length_of(value);
  const bool all =
      count.kind == Value::Kind::kInteger && count.integer <= static_cast<std::int64_t>(limit);
  return all ? items(value, limit) : std::nullopt;
}

std::optional<std::vector<Value>> Evaluator::values_of_dict(const Value& dict, std::size_t limit) {
  const Value count = length_of(dict);
  if (dict.kind != Value::Kind::kObject || count.kind != Value::Kind::kInteger ||
      count.integer > static_cast<std::int64_t>(limit)) {
    return std::nullopt;
  }
  std::vector<Value> out;
  for (const auto& [key, value] : objects_.items(dict.address, limit)) {
    out.push_back(load(value));
  }
  return out;
}

}  // namespace ddpdoctor::values
