// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/json_cursor.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "collector/imports/documents/json_text.h"

namespace ddpdoctor::imports {
namespace {

using Kind = PlainValue::Kind;

/// Whole numbers written as 5.0 are accepted up to here; above, a double is not exact.
constexpr double kMaxExact = 9007199254740992.0;

std::string_view type_of(const PlainValue& value) {
  switch (value.kind) {
    case Kind::kDict:
      return "an object";
    case Kind::kList:
      return "a list";
    case Kind::kText:
      return "a text";
    case Kind::kFlag:
      return "true or false";
    case Kind::kWhole:
    case Kind::kNumber:
      return "a number";
    case Kind::kNone:
      return "null";
    default:
      return "something else";
  }
}

bool is_number(const PlainValue& value) {
  return value.is(Kind::kWhole) || value.is(Kind::kNumber);
}

double as_double(const PlainValue& value) {
  return value.is(Kind::kWhole) ? static_cast<double>(value.whole) : value.number;
}

std::optional<std::int64_t> as_exact(const PlainValue& value) {
  if (value.is(Kind::kNumber) && std::isfinite(value.number) &&
      std::fabs(value.number) <= kMaxExact && std::trunc(value.number) == value.number) {
    return static_cast<std::int64_t>(value.number);
  }
  return value.as_whole();
}

std::string found(const PlainDocument& document, const PlainValue& value) {
  if (is_number(value)) {
    return tree_of(document, value).dump();
  }
  if (value.is(Kind::kText)) {
    return fmt::format("\"{}\"", base::elide(base::printable(value.as_text()), 40));
  }
  return std::string(type_of(value));
}

}  // namespace

Cursor::Cursor(const Cursor& parent, const PlainValue* value)
    : document_(parent.document_),
      value_(value == nullptr || value->is(Kind::kNone) ? nullptr : value),
      complaint_(parent.complaint_),
      parent_(&parent) {}

Cursor Cursor::operator[](std::string_view key) const& {
  const bool object = is(Kind::kDict);
  if (value_ != nullptr && !object) {
    refuse("an object");
  }
  Cursor out(*this, object ? document_->find(*value_, key) : nullptr);
  out.key_ = key;
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
  complaint_->first = base::Error{.what = fmt::format("{}: {} must be {}, not {}", complaint_->file,
                                                      where.empty() ? "the document" : where,
                                                      expected, found(*document_, *value_)),
                                  .hint = "docs/capture.schema.json describes every field"};
}

std::optional<std::string> Cursor::text() const {
  if (value_ == nullptr) {
    return std::nullopt;
  }
  if (!value_->is(Kind::kText)) {
    refuse("a text");
    return std::nullopt;
  }
  return std::string(value_->as_text());
}

std::optional<std::string> Cursor::name() const {
  if (value_ != nullptr && is_number(*value_)) {
    if (const auto number = as_exact(*value_)) {
      return std::to_string(*number);
    }
  }
  return text();
}

std::optional<double> Cursor::number() const {
  if (value_ == nullptr) {
    return std::nullopt;
  }
  if (!is_number(*value_)) {
    refuse("a number");
    return std::nullopt;
  }
  return as_double(*value_);
}

std::optional<bool> Cursor::flag() const {
  if (value_ == nullptr) {
    return std::nullopt;
  }
  if (!value_->is(Kind::kFlag)) {
    refuse("true or false");
    return std::nullopt;
  }
  return value_->as_flag();
}

std::optional<std::int64_t> Cursor::whole(std::int64_t low, std::int64_t high) const {
  if (value_ == nullptr) {
    return std::nullopt;
  }
  const auto number = as_exact(*value_);
  if (!number || *number < low || *number > high) {
    refuse(fmt::format("a whole number from {} to {}", low, high));
    return std::nullopt;
  }
  return number;
}

std::vector<std::string> Cursor::texts() const {
  std::vector<std::string> out;
  if (is(Kind::kText)) {
    out.emplace_back(value_->as_text());
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
  out.reserve(is(Kind::kList) ? document_->items(*value_).size() : 0);
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
  if (!value_->is(Kind::kList)) {
    refuse("a list");
    return;
  }
  std::size_t index = 0;
  for (const PlainValue& value : document_->items(*value_)) {
    Cursor element(*this, &value);
    element.index_ = index++;
    if (value.is(Kind::kDict) && !element.charge(1)) {
      return;
    }
    if (element.present()) {
      visit(element);
    }
  }
}

void Cursor::each_field(const std::function<void(const std::string&, const Cursor&)>& visit) const {
  if (value_ == nullptr) {
    return;
  }
  if (!value_->is(Kind::kDict)) {
    refuse("an object");
    return;
  }
  const auto items = document_->items(*value_);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    Cursor field(*this, &items[i + 1]);
    field.key_ = items[i].as_text();
    if (field.present()) {
      visit(std::string(field.key_), field);
    }
  }
}

}  // namespace ddpdoctor::imports
