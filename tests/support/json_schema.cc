// SPDX-License-Identifier: Apache-2.0
#include "tests/support/json_schema.h"

#include <algorithm>
#include <array>
#include <regex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ddpdoctor::tests {

namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 21> kKnown{"$schema",
                                                  "$id",
                                                  "$defs",
                                                  "$ref",
                                                  "title",
                                                  "description",
                                                  "type",
                                                  "const",
                                                  "enum",
                                                  "required",
                                                  "items",
                                                  "properties",
                                                  "additionalProperties",
                                                  "pattern",
                                                  "minimum",
                                                  "maximum",
                                                  "minLength",
                                                  "minItems",
                                                  "anyOf",
                                                  "allOf",
                                                  "examples"};

class Checker {
 public:
  explicit Checker(const Json& root) : root_(root) {}

  std::vector<std::string> take() {
    return std::move(errors_);
  }

  void check(const Json& value, const Json& schema, const std::string& at) {
    if (schema.is_boolean()) {
      expect(schema.get<bool>(), at, "is not allowed");
      return;
    }
    for (const auto& [word, rule] : schema.items()) {
      expect(std::find(kKnown.begin(), kKnown.end(), word) != kKnown.end(), at,
             "schema word " + word + " is unknown");
    }
    if (schema.contains("$ref")) {
      check(value, root_.at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1))), at);
    }
    check_value(value, schema, at);
    check_object(value, schema, at);
    check_array(value, schema, at);
    for (const Json& each : schema.value("allOf", Json::array())) {
      check(value, each, at);
    }
    if (schema.contains("anyOf")) {
      const auto& any = schema["anyOf"];
      expect(
          std::any_of(any.begin(), any.end(), [&](const Json& each) { return fits(value, each); }),
          at, "fits none of anyOf");
    }
  }

 private:
  void expect(bool holds, const std::string& at, const std::string& problem) {
    if (!holds) {
      errors_.push_back(at + ": " + problem);
    }
  }

  bool fits(const Json& value, const Json& schema) {
    Checker other(root_);
    other.check(value, schema, "");
    return other.errors_.empty();
  }

  static bool is(const Json& value, const std::string& type) {
    return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
           (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "null" && value.is_null()) ||
           (type == "integer" && value.is_number_integer()) ||
           (type == "number" && value.is_number());
  }

  void check_value(const Json& value, const Json& schema, const std::string& at) {
    if (schema.contains("type")) {
      const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
      expect(std::any_of(types.begin(), types.end(),
                         [&](const Json& type) { return is(value, type.get<std::string>()); }),
             at, fmt::format("{} is not {}", value.dump().substr(0, 60), types.dump()));
    }
    expect(!schema.contains("const") || value == schema["const"], at, "is not the constant");
    if (schema.contains("enum")) {
      const auto& allowed = schema["enum"];
      expect(std::find(allowed.begin(), allowed.end(), value) != allowed.end(), at,
             value.dump().substr(0, 60) + " is not in enum");
    }
    if (value.is_string()) {
      const auto text = value.get<std::string>();
      expect(text.size() >= schema.value("minLength", std::size_t{0}), at, "is too short");
      expect(!schema.contains("pattern") ||
                 std::regex_search(text, std::regex(schema["pattern"].get<std::string>())),
             at, text.substr(0, 60) + " does not match");
    }
    if (value.is_number()) {
      expect(!schema.contains("minimum") || value >= schema["minimum"], at, "is below the minimum");
      expect(!schema.contains("maximum") || value <= schema["maximum"], at, "is above the maximum");
    }
  }

  void check_object(const Json& value, const Json& schema, const std::string& at) {
    if (!value.is_object()) {
      return;
    }
    for (const Json& name : schema.value("required", Json::array())) {
      expect(value.contains(name.get<std::string>()), at, "lacks " + name.get<std::string>());
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, part] : value.items()) {
      if (properties.contains(name)) {
        check(part, properties[name], at + "." + name);
      } else if (schema.contains("additionalProperties")) {
        check(part, schema["additionalProperties"], at + "." + name);
      }
    }
  }

  void check_array(const Json& value, const Json& schema, const std::string& at) {
    if (!value.is_array()) {
      return;
    }
    expect(value.size() >= schema.value("minItems", std::size_t{0}), at, "has too few items");
    for (std::size_t i = 0; i < value.size() && schema.contains("items"); ++i) {
      check(value[i], schema["items"], fmt::format("{}[{}]", at, i));
    }
  }

  const Json& root_;
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> schema_errors(std::string_view document, std::string_view schema) {
  const Json rules = Json::parse(schema, nullptr, false);
  const Json value = Json::parse(document, nullptr, false);
  if (rules.is_discarded() || value.is_discarded()) {
    return {rules.is_discarded() ? "the schema is no JSON" : "the document is no JSON"};
  }
  Checker checker(rules);
  checker.check(value, rules, "$");
  return checker.take();
}

}  // namespace ddpdoctor::tests
