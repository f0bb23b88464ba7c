// SPDX-License-Identifier: Apache-2.0
// Values as text for people.
#include "base/text.h"

#include <cmath>

#include <fmt/format.h>

#include "collector/stacks/python/containers.h"
#include "collector/stacks/python/object_flags.h"
#include "collector/values/evaluator.h"

namespace ddpdoctor::values {

namespace {

using Kind = Value::Kind;

constexpr std::size_t kItemsShown = 6;
constexpr int kDeepestShown = 2;
using stacks::kTupleSubclass;
using stacks::kTypeSubclass;

/// Python's spelling of a float: the shortest digits that read back to the same value, with a
/// point.
std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  return text;
}

std::string python_quoted(std::string_view text) {
  const char mark =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"'
                                                                                            : '\'';
  return mark + base::printable(text) + mark;
}

std::string unqualified(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

}  // namespace

bool Evaluator::says_all(const Value& value) {
  switch (value.kind) {
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInteger:
    case Kind::kReal:
    case Kind::kString:
      return true;
    default:
      return value.kind == Kind::kObject && attributes_.is_enum_member(value.address);
  }
}

std::string Evaluator::object_text(RemoteAddress object, int depth) {
  const std::string type = objects_.type_name(object);
  const std::string own = objects_.class_name(objects_.type_of(object));
  if (attributes_.is_enum_member(object)) {
    const auto name = objects_.attribute(object, "_name_");
    return own + "." + base::printable(name ? objects_.string(*name, 64).value_or("?") : "?");
  }
  if (type == "function") {
    return "function " + base::printable(name_of_function(object));
  }
  if ((objects_.type_flags(object) & kTypeSubclass) != 0) {
    return "class " + base::printable(objects_.class_name(object));
  }
  if (type == "int") {
    return stacks::integer_text(objects_, object).value_or("a large int");
  }
  const bool tuple = (objects_.type_flags(object) & kTupleSubclass) != 0;
  const bool shows_items = type == "list" || tuple;
  const auto count = stacks::length_of(objects_, object);
  if (shows_items && depth < kDeepestShown) {
    std::string out = tuple ? "(" : "[";
    const auto items =
        stacks::items_of(objects_, object, kItemsShown).value_or(std::vector<RemoteAddress>());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Value item = load(items[i]);
      out += i == 0 ? "" : ", ";
      out += item.kind == Kind::kObject ? object_text(item.address, depth + 1) : text(item);
    }
    out += count.value_or(0) > items.size() ? fmt::format(", … {} items", *count) : "";
    return out + (tuple ? (items.size() == 1 ? ",)" : ")") : "]");
  }
  if (count && type != "range") {
    return fmt::format("{} of {}", unqualified(type), *count);
  }
  return "an object of class " + base::printable(unqualified(own));
}

std::string Evaluator::text(const Value& value, std::size_t limit) {
  std::string out;
  switch (value.kind) {
    case Kind::kUnknown:
      return {};
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.integer != 0 ? "True" : "False";
    case Kind::kInteger:
      return fmt::format("{}", value.integer);
    case Kind::kReal:
      return real_text(value.real);
    case Kind::kString:
      out = python_quoted(value.text);
      break;
    case Kind::kSequence:
      for (const Value& item : value.items) {
        out += (out.empty() ? "" : ", ") + text(item, limit);
      }
      out = value.text == "tuple" ? "(" + out + ")" : "[" + out + "]";
      break;
    case Kind::kObject:
      out = object_text(value.address, 0);
      break;
    case Kind::kMethod:
      out = "method " + base::printable(name_of_function(value.address));
      break;
    case Kind::kMade:
      out = "an object of class " + base::printable(unqualified(objects_.class_name(value.type)));
      break;
    case Kind::kBuiltinMethod:
      out = "method " + value.text;
      break;
  }
  return base::elide(base::printable(out), limit);
}

}  // namespace ddpdoctor::values
