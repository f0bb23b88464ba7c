// SPDX-License-Identifier: Apache-2.0
// Reads a JSON document field by field: a missing field is absent, a field of the wrong type is
// recorded with its path, and the first such problem is the error of the whole document.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collector/imports/documents/plain_document.h"

namespace ddpdoctor::imports {

/// The first problem.
struct Complaint {
  std::string file;
  std::optional<base::Error> first;
  std::size_t entries = 0;  // objects in lists read so far: processes, threads, frames, calls, …
};

/// One value in the document and its path. Must not outlive the document, the complaint or its
/// parent cursor.
class Cursor {
 public:
  Cursor(const PlainDocument& document, Complaint& complaint)
      : document_(&document), value_(&document.root), complaint_(&complaint) {}

  [[nodiscard]] bool present() const {
    return value_ != nullptr;
  }
  [[nodiscard]] bool is(PlainValue::Kind kind) const {
    return value_ != nullptr && value_->is(kind);
  }
  /// The value itself; only for a field that is present.
  [[nodiscard]] const PlainValue& value() const {
    return *value_;
  }
  [[nodiscard]] const PlainDocument& document() const {
    return *document_;
  }

  /// A field; null counts as absent. Only for a named cursor, because the field refers to it.
  Cursor operator[](std::string_view key) const&;
  Cursor operator[](std::string_view key) const&& = delete;

  [[nodiscard]] std::optional<std::string> text() const;
  /// A text, or the digits of a number: ids occur in both forms.
  [[nodiscard]] std::optional<std::string> name() const;
  [[nodiscard]] std::optional<double> number() const;
  [[nodiscard]] std::optional<bool> flag() const;
  /// A whole number within [low, high].
  [[nodiscard]] std::optional<std::int64_t> whole(std::int64_t low, std::int64_t high) const;
  /// A list of texts; a single text counts as a list of one.
  [[nodiscard]] std::vector<std::string> texts() const;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> wholes(std::int64_t low,
                                                                std::int64_t high) const;

  void each(const std::function<void(const Cursor&)>& visit) const;
  void each_field(const std::function<void(const std::string&, const Cursor&)>& visit) const;

  /// Records that something else was expected here.
  void refuse(std::string_view expected) const;
  /// Adds `entries` to the count; false, with a problem recorded, if a job cannot have so many. A
  /// few kilobytes of a recording may unpack to any number of `{}`.
  [[nodiscard]] bool charge(std::size_t entries) const;

 private:
  /// A part of `parent`; `value` may be nullptr or null.
  Cursor(const Cursor& parent, const PlainValue* value);
  [[nodiscard]] std::string path() const;

  const PlainDocument* document_;
  const PlainValue* value_;
  Complaint* complaint_;
  const Cursor* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
};

}  // namespace ddpdoctor::imports
