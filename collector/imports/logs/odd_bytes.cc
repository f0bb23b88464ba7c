// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/odd_bytes.h"

#include <algorithm>
#include <utility>

#include "base/encoding.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLooked = 4096;  // bytes that show the encoding

/// The byte order mark of UTF-16. A text without one has zeros at every second byte; empty for
/// other texts.
std::string_view mark_of(std::string_view bytes) {
  constexpr std::string_view kLittle = "\xff\xfe";
  constexpr std::string_view kBig = "\xfe\xff";
  if (bytes.starts_with(kLittle) || bytes.starts_with(kBig)) {
    return bytes.substr(0, kLittle.size());
  }
  const std::string_view head = bytes.substr(0, kLooked);
  std::size_t zeros[2] = {0, 0};
  for (std::size_t i = 0; i < head.size(); ++i) {
    zeros[i % 2] += head[i] == '\0' ? 1 : 0;
  }
  const std::size_t half = head.size() / 2;
  const auto mostly = [&](std::size_t zero, std::size_t other) {
    return half >= 8 && zeros[zero] * 10 >= half * 9 && zeros[other] == 0;
  };
  return mostly(1, 0) ? kLittle : mostly(0, 1) ? kBig : std::string_view();
}

bool is_odd(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == 0x7f || (byte < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != '\x1b' &&
                          c != '\a');  // BEL ends an escape sequence
}

}  // namespace

std::optional<std::string> from_utf16(std::string_view bytes) {
  const std::string_view mark = mark_of(bytes);
  if (mark.empty()) {
    return std::nullopt;
  }
  std::string marked(bytes.starts_with(mark) ? std::string_view() : mark);
  marked += bytes;
  std::string out = base::as_utf8(std::move(marked));
  constexpr std::string_view kMark = "\xef\xbb\xbf";  // of each of several texts in one file
  for (std::size_t at = out.find(kMark); at != std::string::npos; at = out.find(kMark, at)) {
    out.erase(at, kMark.size());
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
