// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/json_cursor.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace ddpdoctor::imports {
namespace {

using nlohmann::json;

/// Whole numbers written as 5.0 are accepted up to here; above, a double is not exact.
constexpr double kMaxExact = 9007199254740992.0;

std::string_view type_of(const json& value) {
  switch (value.type()) {
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list";
    case json::value_t::string:
      return "a text";
    case json::value_t::boolean:
      return "true or false";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
    case json::value_t::number_float:
      return "a number";
    case json::value_t::null:
      return "null";
    case json::value_t::binary:
    case json::value_t::discarded:
      break;
  }
  return "something else";
}

std::optional<std::int64_t> as_whole(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= INT64_MAX ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) {
    return value.get<std::int64_t>();
  }
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::isfinite(number) && std::fabs(number) <= kMaxExact && std::trunc(number) == number) {
      return static_cast<std::int64_t>(number);
    }
  }
  return std::nullopt;
}

std::string found(const json& value) {
  if (value.is_number()) {
    return value.dump();
  }
  if (value.is_string()) {
    return fmt::format("\"{}\"",
                       base::elide(base::printable(value.get_ref<const std::string&>()), 40));
  }
  return std::string(type_of(value));
}

}  // namespace

Cursor Cursor::operator[](std::string_view key) const& {
  Cursor out;
  out.complaint_ = complaint_;
  out.parent_ = this;
  out.key_ = key;
  if (value_ == nullptr) {
    return out;
  }
  if (!value_->is_object()) {
    refuse("an object");
    return out;
  }
  const auto field = value_->find(std::string(key));
  if (field != value_->end() && !field->is_null()) {
    out.value_ = &*field;
  }
  return out;
}

std::string Cursor::path() const {
  if (parent_ == nullptr) {
    return {};
  }
  const std::string before = parent_->path();
  if (key_.empty()) {
    return fmt::format("{}[{}]", before, index_);
  }
  const std::string shown = base::elide(base::printable(key_), 60);
  return before.empty() ? shown : fmt::format("{}.{}", before, shown);
}

void Cursor::refuse(std::string_view expected) const {
  if (complaint_->first || value_ == nullptr) {
    return;
  }
  const std::string where = path();
  complaint_->first = base::Error{
      .what = fmt::format("{}: {} must be {}, not {}", complaint_->file,
                          where.empty() ? "the document" : where, expected, found(*value_)),
      .hint = "docs/capture.schema.json describes every field"};
}

std::optional<std::string> Cursor::text() const {
  if (value_ == nullptr) {
    return std::nullopt;
  }
  if (!value_->is_string()) {
    refuse("a text");
    return std::nullopt;
  }
  return value_->get_ref<const std::string&>();
}

std::optional<std::string> Cursor::name() const {
  if (value_ != nullptr && value_->is_number()) {
    if (const auto number = as_whole(*value_)) {
      return std::to_string(*number);
    }
  }
  return text();
}

std::optional<double> Cursor::number() const {
  if (value_ == nullptr) {
    return std::nullopt;
  }
  if (!value_->is_number() || !std::isfinite(value_->get<double>())) {
    refuse("a number");
    return std::nullopt;
  }
  return value_->get<double>();
}

std::optional<bool> Cursor::flag() const {
  if (value_ == nullptr) {
    return std::nullopt;
  }
  if (!value_->is_boolean()) {
    refuse("true or false");
    return std::nullopt;
  }
  return value_->get<bool>();
}

std::optional<std::int64_t> Cursor::whole(std::int64_t low, std::int64_t high) const {
  if (value_ == nullptr) {
    return std::nullopt;
  }
  const auto number = as_whole(*value_);
  if (!number || *number < low || *number > high) {
    refuse(fmt::format("a whole number from {} to {}", low, high));
    return std::nullopt;
  }
  return number;
}

std::vector<std::string> Cursor::texts() const {
  std::vector<std::string> out;
  if (value_ != nullptr && value_->is_string()) {
    out.push_back(value_->get_ref<const std::string&>());
    return out;
  }
  each([&out](const Cursor& element) {
    if (auto one = element.name()) {
      out.push_back(std::move(*one));
    }
  });
  return out;
}

std::optional<std::vector<std::int64_t>> Cursor::wholes(std::int64_t low, std::int64_t high) const {
  if (value_ == nullptr) {
    return std::nullopt;
  }
  std::vector<std::int64_t> out;
  each([&](const Cursor& element) {
    if (const auto one = element.whole(low, high)) {
      out.push_back(*one);
    }
  });
  return out;
}

bool Cursor::charge(std::size_t entries) const {
  constexpr std::size_t kMost = 3'000'000;
  complaint_->entries += std::min(entries, kMost);
  if (complaint_->entries <= kMost) {
    return true;
  }
  if (!complaint_->first) {
    complaint_->first =
        base::Error{.what = fmt::format(
                        "{} has more than {} million entries (processes, threads, frames, calls)",
                        complaint_->file, kMost / 1'000'000),
                    .hint = "give ddpdoctor the files of fewer ranks at a time"};
  }
  return false;
}

void Cursor::each(const std::function<void(const Cursor&)>& visit) const {
  if (value_ == nullptr) {
    return;
  }
  if (!value_->is_array()) {
    refuse("a list");
    return;
  }
  for (std::size_t i = 0; i < value_->size(); ++i) {
    Cursor element;
    element.complaint_ = complaint_;
    element.parent_ = this;
    element.index_ = i;
    element.value_ = &(*value_)[i];
    if (element.value_->is_object() && !element.charge(1)) {
      return;
    }
    if (!element.value_->is_null()) {
      visit(element);
    }
  }
}

void Cursor::each_field(const std::function<void(const std::string&, const Cursor&)>& visit) const {
  if (value_ == nullptr) {
    return;
  }
  if (!value_->is_object()) {
    refuse("an object");
    return;
  }
  for (const auto& [key, value] : value_->items()) {
    if (!value.is_null()) {
      Cursor field;
      field.complaint_ = complaint_;
      field.parent_ = this;
      field.key_ = key;
      field.value_ = &value;
      visit(key, field);
    }
  }
}

}  // namespace ddpdoctor::imports
