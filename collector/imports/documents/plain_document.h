// SPDX-License-Identifier: Apache-2.0
// Plain data from a pickle or a JSON text: None, numbers, texts, lists and dicts. Values are small
// and refer to each other by index, so that a document of millions of values is a few arrays, is
// destroyed without recursion, and may contain itself without harm.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::imports {

/// One value. Texts point into the input bytes or into the document.
struct PlainValue {
  enum class Kind : std::uint8_t {
    kNone,
    kFlag,
    kWhole,
    kNumber,
    kText,
    kList,
    kDict,
    kName,
    kMark
  };

  Kind kind = Kind::kNone;
  std::uint32_t length = 0;  // length of a text
  union {
    std::int64_t whole = 0;  // also a flag, or the index of a container or name
    double number;
    const char* text;
  };

  [[nodiscard]] bool is(Kind wanted) const {
    return kind == wanted;
  }
  /// Empty if it is not a text.
  [[nodiscard]] std::string_view as_text() const {
    return kind == Kind::kText ? std::string_view(text, length) : std::string_view();
  }
  [[nodiscard]] std::optional<std::int64_t> as_whole() const {
    return kind == Kind::kWhole ? std::optional(whole) : std::nullopt;
  }
  /// None is false, as in Python.
  [[nodiscard]] bool as_flag() const {
    return (kind == Kind::kFlag || kind == Kind::kWhole) && whole != 0;
  }

  static PlainValue of_flag(bool flag) {
    PlainValue out;
    out.kind = Kind::kFlag;
    out.whole = flag ? 1 : 0;
    return out;
  }
  static PlainValue of_whole(std::int64_t whole) {
    PlainValue out;
    out.kind = Kind::kWhole;
    out.whole = whole;
    return out;
  }
  static PlainValue of_number(double number);
  /// The bytes must outlive the value.
  static PlainValue of_text(std::string_view text) {
    PlainValue out;
    out.kind = Kind::kText;
    out.length = static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), UINT32_MAX));
    out.text = text.data();
    return out;
  }
};

/// The values of one file. Clearing keeps the memory for the next file.
class PlainDocument {
 public:
  PlainValue root;
  bool cut = false;  // the input was truncated: the document contains what preceded the end

  void clear();
  [[nodiscard]] std::size_t values() const {
    return pool_.size();
  }

  /// The elements of a list; for a dict: key, value, key, value. Empty for other kinds. Valid until
  /// the document grows.
  [[nodiscard]] std::span<const PlainValue> items(const PlainValue& container) const;
  /// The last entry with that key; nullptr if there is none. Valid until the document grows.
  [[nodiscard]] const PlainValue* find(const PlainValue& dict, std::string_view key) const;

  PlainValue make(PlainValue::Kind list_or_dict);
  void append(const PlainValue& container, std::span<const PlainValue> more);
  /// Stores a copy of a text that is not in the input bytes.
  PlainValue keep(std::string text);

 private:
  struct Container {
    std::size_t begin = 0;
    std::size_t count = 0;
    std::size_t room = 0;
  };

  std::vector<Container> containers_;
  std::vector<PlainValue> pool_;
  std::deque<std::string> texts_;
};

}  // namespace ddpdoctor::imports
