// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/odd_bytes.h"

#include <algorithm>
#include <cstdint>

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLooked = 4096;  // bytes that show the encoding

enum class Order { kNone, kLittle, kBig };

/// By the mark at the beginning; without one, by zeros at every second byte.
Order order_of(std::string_view bytes) {
  if (bytes.starts_with("\xff\xfe")) {
    return Order::kLittle;
  }
  if (bytes.starts_with("\xfe\xff")) {
    return Order::kBig;
  }
  const std::string_view head = bytes.substr(0, kLooked & ~std::size_t{1});
  std::size_t zeros[2] = {0, 0};
  for (std::size_t i = 0; i < head.size(); ++i) {
    zeros[i % 2] += head[i] == '\0' ? 1 : 0;
  }
  const std::size_t half = head.size() / 2;
  const auto mostly = [&](std::size_t zero, std::size_t other) {
    return half >= 8 && zeros[zero] * 10 >= half * 9 && zeros[other] == 0;
  };
  return mostly(1, 0) ? Order::kLittle : mostly(0, 1) ? Order::kBig : Order::kNone;
}

void append_utf8(std::uint32_t code, std::string& out) {
  const auto tail = [&out, code](unsigned shift) {
    out += static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
  };
  if (code < 0x80U) {
    out += static_cast<char>(code);
  } else if (code < 0x800U) {
    out += static_cast<char>(0xC0U | (code >> 6U));
    tail(0);
  } else if (code < 0x10000U) {
    out += static_cast<char>(0xE0U | (code >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool is_odd(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == 0x7f || (byte < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != '\x1b' &&
                          c != '\a');  // BEL ends an escape sequence
}

}  // namespace

std::optional<std::string> from_utf16(std::string_view bytes) {
  const Order order = order_of(bytes);
  if (order == Order::kNone) {
    return std::nullopt;
  }
  constexpr std::uint32_t kMark = 0xFEFF;
  constexpr std::uint32_t kUnknown = 0xFFFD;
  const auto unit = [&](std::size_t at) -> std::uint32_t {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const auto second = static_cast<unsigned char>(bytes[at + 1]);
    return order == Order::kLittle ? first | (std::uint32_t{second} << 8U)
                                   : second | (std::uint32_t{first} << 8U);
  };
  std::string out;
  out.reserve(bytes.size() / 2);
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    std::uint32_t code = unit(at);
    if (code >= 0xD800U && code < 0xDC00U && at + 3 < bytes.size() &&
        (unit(at + 2) & 0xFC00U) == 0xDC00U) {
      at += 2;
      code = 0x10000U + ((code - 0xD800U) << 10U) + (unit(at) - 0xDC00U);
    } else if ((code & 0xF800U) == 0xD800U) {
      code = kUnknown;  // half a pair
    }
    if (code != kMark) {
      append_utf8(code, out);
    }
  }
  return out;
}

std::optional<std::string> without_odd_bytes(std::string_view text) {
  if (std::none_of(text.begin(), text.end(), is_odd)) {
    return std::nullopt;
  }
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const bool erases = c == '\b' && !out.empty() && out.back() != '\n' && out.back() != '\r';
    while (erases && out.size() > 1 && (static_cast<unsigned char>(out.back()) & 0xC0U) == 0x80U) {
      out.pop_back();  // the rest of a character of UTF-8
    }
    if (erases) {
      out.pop_back();
    } else if (!is_odd(c)) {
      out += c;
    }
  }
  return out;
}

}  // namespace ddpdoctor::imports
