// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/pickle_bytes.h"

#include <bit>
#include <charconv>
#include <limits>

#include "base/encoding.h"

namespace ddpdoctor::imports {
namespace {

/// The hexadecimal digits after a backslash and a letter; nothing if some are missing.
std::optional<std::uint32_t> escape(std::string_view text, std::size_t at, std::size_t digits) {
  std::uint32_t code = 0;
  if (at + digits > text.size()) {
    return std::nullopt;
  }
  const char* const first = text.data() + at;
  const auto [end, error] = std::from_chars(first, first + digits, code, 16);
  return error == std::errc() && end == first + digits && code <= 0x10FFFF ? std::optional(code)
                                                                           : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> PickleBytes::whole(std::size_t width) {
  if (width > sizeof(std::int64_t)) {
    if (bytes_.size() - at_ < width) {
      return std::nullopt;
    }
    at_ += width;
    const bool negative = static_cast<signed char>(bytes_[at_ - 1]) < 0;
    return negative ? std::numeric_limits<std::int64_t>::min()
                    : std::numeric_limits<std::int64_t>::max();
  }
  const auto value = little(width);
  if (!value || width == 0) {
    return value ? std::optional<std::int64_t>(0) : std::nullopt;
  }
  const unsigned unused = 64U - 8U * static_cast<unsigned>(width);
  return static_cast<std::int64_t>(*value << unused) >> unused;
}

std::optional<double> PickleBytes::big_double() {
  const auto value = little(sizeof(double));
  return value ? std::optional(std::bit_cast<double>(__builtin_bswap64(*value))) : std::nullopt;
}

std::optional<std::string_view> PickleBytes::line() {
  const std::size_t end = bytes_.find('\n', at_);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view text = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return text;
}

std::int64_t whole_of(std::string_view decimal) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(decimal.data(), decimal.data() + decimal.size(), value);
  if (error == std::errc::result_out_of_range) {
    return decimal.starts_with('-') ? std::numeric_limits<std::int64_t>::min()
                                    : std::numeric_limits<std::int64_t>::max();
  }
  return value;
}

double number_of(std::string_view decimal) {
  double value = 0;
  std::from_chars(decimal.data(), decimal.data() + decimal.size(), value);
  return value;
}

std::string unquoted(std::string_view line) {
  if (line.size() >= 2 && (line.front() == '\'' || line.front() == '"') &&
      line.back() == line.front()) {
    line = line.substr(1, line.size() - 2);
  }
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      out += line[i];
      continue;
    }
    const char letter = line[++i];
    if (letter == 'n' || letter == 't') {
      out += letter == 'n' ? '\n' : '\t';
    } else if (const auto code = escape(line, i + 1, 2); letter == 'x' && code) {
      out += static_cast<char>(*code);
      i += 2;
    } else {
      out += letter;
    }
  }
  return out;
}

std::string unescaped(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char letter = line[i] == '\\' && i + 1 < line.size() ? line[i + 1] : '\0';
    const std::size_t digits = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    const auto code = digits == 0 ? std::nullopt : escape(line, i + 2, digits);
    if (code) {
      base::append_utf8(*code, out);
      i += 1 + digits;
    } else {
      base::append_utf8(static_cast<unsigned char>(line[i]), out);
    }
  }
  return out;
}

}  // namespace ddpdoctor::imports
