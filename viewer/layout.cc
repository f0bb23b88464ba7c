// SPDX-License-Identifier: Apache-2.0
#include "viewer/layout.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "base/text.h"

namespace ddpdoctor::viewer {

namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Unicode 15 EastAsianWidth.txt (W, F), joined to blocks; and the combining marks that occur in
// European and Vietnamese text.
constexpr std::array<Range, 10> kWide{{{0x1100, 0x115F},
                                       {0x2E80, 0xA4CF},
                                       {0xAC00, 0xD7A3},
                                       {0xF900, 0xFAFF},
                                       {0xFE30, 0xFE6F},
                                       {0xFF00, 0xFF60},
                                       {0xFFE0, 0xFFE6},
                                       {0x1F300, 0x1F64F},
                                       {0x1F900, 0x1FAFF},
                                       {0x20000, 0x3FFFD}}};
constexpr std::array<Range, 3> kCombining{{{0x0300, 0x036F}, {0x200B, 0x200F}, {0xFE00, 0xFE0F}}};

template <std::size_t N>
bool in(const std::array<Range, N>& ranges, std::uint32_t character) {
  return std::any_of(ranges.begin(), ranges.end(), [character](const Range& range) {
    return range.first <= character && character <= range.last;
  });
}

/// One character of UTF-8 text: its bytes and its columns.
struct Character {
  std::size_t bytes = 1;
  std::size_t columns = 1;
};

Character character_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  std::size_t length = 1;
  std::uint32_t value = lead;
  if (lead >= 0xF0) {
    length = 4;
    value = lead & 0x07U;
  } else if (lead >= 0xE0) {
    length = 3;
    value = lead & 0x0FU;
  } else if (lead >= 0xC0) {
    length = 2;
    value = lead & 0x1FU;
  }
  if (at + length > text.size()) {
    return {};
  }
  for (std::size_t i = 1; i < length; ++i) {
    value = value << 6U | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
  }
  if (in(kCombining, value)) {
    return {.bytes = length, .columns = 0};
  }
  return {.bytes = length, .columns = in(kWide, value) ? 2U : 1U};
}

std::string_view escape(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "";
    case Tone::kError:
      return "\x1b[1;31m";
    case Tone::kWarning:
      return "\x1b[1;33m";
    case Tone::kGood:
      return "\x1b[1;32m";
    case Tone::kStrong:
      return "\x1b[1m";
    case Tone::kFaint:
      return "\x1b[2m";
  }
  return "";
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    columns += character.columns;
    at += character.bytes;
  }
  return columns;
}

std::string one_line(std::string_view text) {
  std::string joined(base::trim(text));
  std::replace(joined.begin(), joined.end(), '\n', ' ');
  return base::printable(joined);
}

std::string fit(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) {
    return std::string(text);
  }
  std::size_t columns = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (columns + character.columns + 1 > width) {
      break;
    }
    columns += character.columns;
    at += character.bytes;
  }
  return std::string(base::trim(text.substr(0, at))) + "…";
}

std::string pad(std::string_view text, std::size_t width) {
  const std::size_t columns = display_width(text);
  return std::string(text) + std::string(columns < width ? width - columns : 0, ' ');
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  std::size_t columns = 0;
  for (const std::string_view word : base::split(text, ' ')) {
    if (word.empty()) {
      continue;
    }
    const std::size_t needed = display_width(word);
    if (!lines.back().empty() && columns + 1 + needed > width) {
      lines.emplace_back();
      columns = 0;
    }
    if (!lines.back().empty()) {
      lines.back() += ' ';
      ++columns;
    }
    lines.back() += word;
    columns += needed;
  }
  return lines;
}

std::string toned(std::string_view text, Tone tone, bool colour) {
  if (!colour || tone == Tone::kPlain || text.empty()) {
    return std::string(text);
  }
  return fmt::format("{}{}\x1b[0m", escape(tone), text);
}

}  // namespace ddpdoctor::viewer
