// SPDX-License-Identifier: Apache-2.0
#include "base/encoding.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ddpdoctor::base {
namespace {

constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";
constexpr std::string_view kLittleMark = "\xff\xfe";
constexpr std::string_view kBigMark = "\xfe\xff";
constexpr std::uint32_t kReplacement = 0xfffd;

/// UTF-16 without its byte order mark.
struct Units {
  std::string_view bytes;
  bool little = true;

  [[nodiscard]] std::size_t size() const {
    return bytes.size() / 2;
  }
  [[nodiscard]] std::uint32_t at(std::size_t index) const {
    const auto first = static_cast<unsigned char>(bytes[2 * index]);
    const auto second = static_cast<unsigned char>(bytes[2 * index + 1]);
    return little ? first | (std::uint32_t{second} << 8U) : second | (std::uint32_t{first} << 8U);
  }
};

bool is_first_half(std::uint32_t unit) {
  return unit >= 0xd800 && unit < 0xdc00;
}

bool is_second_half(std::uint32_t unit) {
  return unit >= 0xdc00 && unit < 0xe000;
}

std::string from_utf16(const Units& units) {
  std::string out;
  out.reserve(units.size() + units.size() / 8);  // Dumps and logs are nearly all ASCII.
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::uint32_t unit = units.at(i);
    if (!is_first_half(unit)) {
      append_utf8(is_second_half(unit) ? kReplacement : unit, out);
    } else if (i + 1 < units.size() && is_second_half(units.at(i + 1))) {
      append_utf8(0x10000 + ((unit - 0xd800) << 10U) + (units.at(++i) - 0xdc00), out);
    } else if (i + 1 < units.size()) {
      append_utf8(kReplacement, out);
    }
  }
  return out;
}

}  // namespace

void append_utf8(std::uint32_t code, std::string& out) {
  const auto byte = [&out](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0U | (code >> 6U));
    byte(0x80U | (code & 0x3fU));
  } else if (code < 0x10000) {
    byte(0xe0U | (code >> 12U));
    byte(0x80U | ((code >> 6U) & 0x3fU));
    byte(0x80U | (code & 0x3fU));
  } else {
    byte(0xf0U | (code >> 18U));
    byte(0x80U | ((code >> 12U) & 0x3fU));
    byte(0x80U | ((code >> 6U) & 0x3fU));
    byte(0x80U | (code & 0x3fU));
  }
}

std::string as_utf8(std::string bytes) {
  const std::string_view all = bytes;
  if (all.starts_with(kUtf8Mark)) {
    bytes.erase(0, kUtf8Mark.size());
  } else if (all.starts_with(kLittleMark) || all.starts_with(kBigMark)) {
    return from_utf16({.bytes = all.substr(2), .little = all.starts_with(kLittleMark)});
  }
  return bytes;
}

}  // namespace ddpdoctor::base
