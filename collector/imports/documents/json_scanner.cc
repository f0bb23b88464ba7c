// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/json_scanner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/encoding.h"

namespace ddpdoctor::imports {
namespace {

using Kind = PlainValue::Kind;
using Reason = JsonEnd::Reason;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Bytes that a string may contain as they are, one byte per character.
constexpr std::array<bool, 256> plain_bytes() {
  std::array<bool, 256> out{};
  for (unsigned byte = 0x20; byte < 0x80; ++byte) {
    out[byte] = byte != '"' && byte != '\\';
  }
  return out;
}

constexpr std::array<bool, 256> kPlain = plain_bytes();

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

/// Length of the character of several bytes at the start of `text`; 0 = not valid UTF-8.
std::size_t length_of_character(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&byte](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first >= 0xc2 && first <= 0xdf) {
    return follows(1) ? 2 : 0;
  }
  if (first >= 0xe0 && first <= 0xef) {  // no overlong form, no half of a surrogate pair
    const bool sound = (first != 0xe0 || byte(1) >= 0xa0) && (first != 0xed || byte(1) <= 0x9f);
    return sound && follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool sound = (first != 0xf0 || byte(1) >= 0x90) && (first != 0xf4 || byte(1) <= 0x8f);
    return sound && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

/// A character of several bytes whose end is missing.
bool is_cut_character(std::string_view rest) {
  constexpr std::size_t kLongest = 4;
  return rest.size() < kLongest && static_cast<unsigned char>(rest.front()) >= 0xc2 &&
         std::all_of(rest.begin() + 1, rest.end(),
                     [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; });
}

class Scanner {
 public:
  Scanner(std::string_view text, const JsonLimits& limits, PlainDocument& out)
      : text_(text), limits_(limits), out_(out) {}

  JsonEnd run() {
    at_ = text_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    bool good = value();
    while (good && !open_.empty()) {
      good = element();
    }
    if (good) {
      skip_space();
      good = at_ == text_.size();
    }
    while (!open_.empty()) {
      close();
    }
    out_.root = stack_.empty() ? PlainValue{} : stack_.front();
    return {.reason = good ? Reason::kComplete : reason_, .position = at_};
  }

 private:
  [[nodiscard]] char peek() const {
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool fail(Reason reason) {
    reason_ = reason;
    return false;
  }

  bool count() {
    return ++values_ <= limits_.values || fail(Reason::kTooMany);
  }

  /// The next element of the innermost container, or its end.
  bool element() {
    const bool dict = stack_[open_.back()].is(Kind::kDict);
    skip_space();
    if (peek() == (dict ? '}' : ']')) {
      ++at_;
      close();
      return true;
    }
    if (!std::exchange(fresh_, false)) {
      if (peek() != ',' || !count()) {
        return false;
      }
      ++at_;
    }
    return (!dict || key()) && value();
  }

  bool key() {
    skip_space();
    if (peek() != '"' || !string()) {
      return false;
    }
    skip_space();
    if (peek() != ':') {
      return false;
    }
    ++at_;
    return true;
  }

  bool value() {
    skip_space();
    switch (peek()) {
      case '{':
        return open(Kind::kDict);
      case '[':
        return open(Kind::kList);
      case '"':
        return string();
      case 't':
        return word("true", PlainValue::of_flag(true));
      case 'f':
        return word("false", PlainValue::of_flag(false));
      case 'n':
        return word("null", {});
      default:
        return number();
    }
  }

  bool open(Kind kind) {
    if (open_.size() >= limits_.depth) {
      return fail(Reason::kTooDeep);
    }
    if (!count()) {
      return false;
    }
    ++at_;
    open_.push_back(stack_.size());
    stack_.push_back(out_.make(kind));
    fresh_ = true;
    return true;
  }

  /// Containers are filled when they end, so that each is contiguous.
  void close() {
    const std::size_t place = open_.back();
    open_.pop_back();
    fresh_ = false;
    std::size_t count = stack_.size() - place - 1;
    count -= stack_[place].is(Kind::kDict) ? count % 2 : 0;  // drops a key without a value
    out_.append(stack_[place], std::span(stack_).subspan(place + 1, count));
    stack_.resize(place + 1);
  }

  bool word(std::string_view expected, const PlainValue& meaning) {
    for (const char letter : expected) {
      if (peek() != letter) {
        return false;
      }
      ++at_;
    }
    stack_.push_back(meaning);
    return true;
  }

  bool digits() {
    const std::size_t first = at_;
    while (is_digit(peek())) {
      ++at_;
    }
    return at_ > first;
  }

  bool number() {
    const std::size_t first = at_;
    at_ += peek() == '-' ? 1 : 0;
    if (peek() == '0') {
      ++at_;
    } else if (!digits()) {
      return false;
    }
    bool whole = true;
    if (peek() == '.') {
      whole = false;
      ++at_;
      if (!digits()) {
        return false;
      }
    }
    if (peek() == 'e' || peek() == 'E') {
      whole = false;
      ++at_;
      at_ += peek() == '+' || peek() == '-' ? 1 : 0;
      if (!digits()) {
        return false;
      }
    }
    return add_number(text_.substr(first, at_ - first), whole);
  }

  /// A whole number that does not fit becomes a double.
  bool add_number(std::string_view digits, bool whole) {
    const char* const end = digits.data() + digits.size();
    std::int64_t exact = 0;
    if (whole && std::from_chars(digits.data(), end, exact).ec == std::errc()) {
      stack_.push_back(PlainValue::of_whole(exact));
      return true;
    }
    double value = 0;
    if (std::from_chars(digits.data(), end, value).ec != std::errc()) {
      value = std::strtod(std::string(digits).c_str(), nullptr);  // tells tiny from huge
    }
    if (!std::isfinite(value)) {
      at_ -= digits.size();
      return fail(Reason::kTooLargeNumber);
    }
    stack_.push_back(PlainValue::of_number(value));
    return true;
  }

  /// Passes over the bytes of a string up to its end or an escape.
  bool plain_part() {
    while (true) {
      while (at_ < text_.size() && kPlain[static_cast<unsigned char>(text_[at_])]) {
        ++at_;
      }
      if (at_ >= text_.size()) {
        return false;
      }
      if (text_[at_] == '"' || text_[at_] == '\\') {
        return true;
      }
      const std::string_view rest = text_.substr(at_);
      const std::size_t length = length_of_character(rest);
      if (length == 0) {
        at_ = is_cut_character(rest) ? text_.size() : at_;
        return false;
      }
      at_ += length;
    }
  }

  bool string() {
    std::size_t first = ++at_;
    if (!plain_part()) {
      return false;
    }
    if (text_[at_] == '"') {
      stack_.push_back(PlainValue::of_text(text_.substr(first, at_++ - first)));
      return true;
    }
    std::string copy;
    while (text_[at_] == '\\') {
      copy.append(text_, first, at_ - first);
      ++at_;
      if (!escape(copy)) {
        return false;
      }
      first = at_;
      if (!plain_part()) {
        return false;
      }
    }
    copy.append(text_, first, at_++ - first);
    stack_.push_back(out_.keep(std::move(copy)));
    return true;
  }

  bool escape(std::string& copy) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char name = peek();
    if (name == 'u') {
      ++at_;
      return unicode(copy);
    }
    const std::size_t known = at_ < text_.size() ? kNames.find(name) : std::string_view::npos;
    if (known == std::string_view::npos) {
      return false;
    }
    copy += kMeanings[known];
    ++at_;
    return true;
  }

  std::optional<std::uint32_t> four_digits() {
    constexpr std::size_t kDigits = 4;
    const std::string_view digits = text_.substr(std::min(at_, text_.size()), kDigits);
    std::uint32_t code = 0;
    const char* const end = digits.data() + digits.size();
    const auto [read, error] = std::from_chars(digits.data(), end, code, 16);
    at_ += static_cast<std::size_t>(read - digits.data());
    return digits.size() == kDigits && read == end && error == std::errc() ? std::optional(code)
                                                                           : std::nullopt;
  }

  /// The four digits after \u, and the second half of a surrogate pair.
  bool unicode(std::string& copy) {
    constexpr std::uint32_t kFirstHalf = 0xd800;
    constexpr std::uint32_t kSecondHalf = 0xdc00;
    constexpr std::uint32_t kAfterHalves = 0xe000;
    const auto code = four_digits();
    if (!code || (*code >= kSecondHalf && *code < kAfterHalves)) {
      return false;
    }
    if (*code < kFirstHalf || *code >= kAfterHalves) {
      base::append_utf8(*code, copy);
      return true;
    }
    for (const char letter : {'\\', 'u'}) {
      if (peek() != letter) {
        return false;
      }
      ++at_;
    }
    const auto low = four_digits();
    if (!low || *low < kSecondHalf || *low >= kAfterHalves) {
      return false;
    }
    base::append_utf8(0x10000U + ((*code - kFirstHalf) << 10U) + (*low - kSecondHalf), copy);
    return true;
  }

  std::string_view text_;
  JsonLimits limits_;
  PlainDocument& out_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
  bool fresh_ = false;  // the innermost container has no element yet
  Reason reason_ = Reason::kNotJson;
  std::vector<PlainValue> stack_;
  std::vector<std::size_t> open_;  // positions in the stack
};

}  // namespace

JsonEnd scan_json(std::string_view text, const JsonLimits& limits, PlainDocument& out) {
  return Scanner(text, limits, out).run();
}

}  // namespace ddpdoctor::imports
