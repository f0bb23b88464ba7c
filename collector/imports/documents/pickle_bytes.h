// SPDX-License-Identifier: Apache-2.0
// Reads the arguments of pickle's instructions. Returns nothing if the bytes end too early.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// A position in a pickle that moves forward.
class PickleBytes {
 public:
  explicit PickleBytes(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] std::size_t at() const {
    return at_;
  }
  [[nodiscard]] std::size_t size() const {
    return bytes_.size();
  }
  [[nodiscard]] std::string_view left() const {
    return bytes_.substr(at_);
  }
  void skip(std::size_t count) {
    at_ += count;
  }
  std::optional<unsigned char> byte() {
    return at_ < bytes_.size() ? std::optional(static_cast<unsigned char>(bytes_[at_++]))
                               : std::nullopt;
  }
  /// An unsigned number of at most 8 bytes.
  std::optional<std::uint64_t> little(std::size_t width) {
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    const std::size_t left = bytes_.size() - at_;
    if (width > kWord || left < width) {
      return std::nullopt;
    }
    std::uint64_t value = 0;
    if (left >= kWord) {  // one load of fixed size; excess bytes are masked
      std::memcpy(&value, bytes_.data() + at_, kWord);
      value &= width == kWord ? ~std::uint64_t{0} : (std::uint64_t{1} << (8U * width)) - 1;
    } else {
      std::memcpy(&value, bytes_.data() + at_, width);
    }
    at_ += width;
    return value;
  }
  /// Two's complement; numbers beyond 64 bits become the largest.
  std::optional<std::int64_t> whole(std::size_t width);
  std::optional<std::int64_t> unsigned_whole(std::size_t width) {
    const auto value = little(width);
    return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
  }
  std::optional<double> big_double();
  /// A text after its length.
  std::optional<std::string_view> sized(std::size_t width) {
    const std::size_t start = at_;
    const auto length = little(width);
    if (!length || *length > bytes_.size() - at_) {
      at_ = start;
      return std::nullopt;
    }
    const std::string_view text = bytes_.substr(at_, *length);
    at_ += *length;
    return text;
  }
  /// A text up to a line feed.
  std::optional<std::string_view> line();
  /// 0, 1, 2, …: the indices that MEMOIZE assigns.
  std::uint64_t next_memo() {
    return memo_++;
  }

 private:
  static_assert(std::endian::native == std::endian::little);

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::uint64_t memo_ = 0;
};

/// Decimal text as a number; 0 if it is invalid, the largest number if it is too large.
std::int64_t whole_of(std::string_view decimal);
double number_of(std::string_view decimal);
/// Python's repr of a string without its quotes.
std::string unquoted(std::string_view line);
/// Python's raw-unicode-escape: "\u00e9" becomes UTF-8.
std::string unescaped(std::string_view line);

}  // namespace ddpdoctor::imports
