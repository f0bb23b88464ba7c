// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace ddpdoctor::base {

std::string ranges(const std::vector<int>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    if (!out.empty()) {
      out += ',';
    }
    out +=
        last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) {
      return parts;
    }
    begin = end + 1;
  }
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool contains_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [text](std::string_view part) { return contains(text, part); });
}

bool begins_with_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [text](std::string_view part) { return text.starts_with(part); });
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string elide(std::string_view text, std::size_t width) {
  if (text.size() <= width) {
    return std::string(text);
  }
  std::size_t cut = width;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) {
    --cut;
  }
  return std::string(text.substr(0, cut)) + "…";
}

std::string duration(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  if (seconds < 10) {
    return fmt::format("{:.1f} s", seconds);
  }
  const auto whole = static_cast<std::int64_t>(seconds);
  if (seconds < kMinute) {
    return fmt::format("{} s", whole);
  }
  const auto two = [](std::int64_t large, std::string_view unit, std::int64_t small,
                      std::string_view smaller) {
    return small == 0 ? fmt::format("{} {}", large, unit)
                      : fmt::format("{} {} {} {}", large, unit, small, smaller);
  };
  if (seconds < kHour) {
    return two(whole / 60, "min", whole % 60, "s");
  }
  constexpr std::int64_t kDay = 24 * 3600;
  if (whole < 2 * kDay) {
    return two(whole / 3600, "h", whole % 3600 / 60, "min");
  }
  constexpr std::int64_t kDaysOfYear = 365;
  const std::int64_t days = whole / kDay;
  return days < 2 * kDaysOfYear ? fmt::format("{} days", days)
                                : fmt::format("{} years", days / kDaysOfYear);
}

std::string bytes(double count) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  constexpr double kStep = 1024;
  std::size_t unit = 0;
  while (count >= kStep && unit + 1 < kUnits.size()) {
    count /= kStep;
    ++unit;
  }
  const int decimals = count < 10 && unit > 0 ? 1 : 0;
  return fmt::format("{:.{}f} {}", count, decimals, kUnits.at(unit));
}

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

namespace {

/// Length of the valid UTF-8 sequence at `at`, or 0.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  std::size_t length = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
  } else {
    return 0;
  }
  if (at + length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xC0U) != 0x80U) {
      return 0;
    }
  }
  const auto second = static_cast<unsigned char>(text[at + 1]);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool beyond = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

/// Invisible characters that change the writing direction: they can make one name look like
/// another.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kTurns = {
    {{"\u200e", "\\u200e"},
     {"\u200f", "\\u200f"},
     {"\u202a", "\\u202a"},
     {"\u202b", "\\u202b"},
     {"\u202c", "\\u202c"},
     {"\u202d", "\\u202d"},
     {"\u202e", "\\u202e"},
     {"\u2066", "\\u2066"},
     {"\u2067", "\\u2067"},
     {"\u2068", "\\u2068"},
     {"\u2069", "\\u2069"}}};

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte < 0x7F) {
      out += text[i++];
    } else if (byte == '\t') {
      out += ' ';
      ++i;
    } else if (const std::size_t length = byte >= 0x80 ? utf8_length(text, i) : 0; length > 0) {
      const std::string_view character = text.substr(i, length);
      const auto turn = std::find_if(kTurns.begin(), kTurns.end(), [character](const auto& one) {
        return one.first == character;
      });
      out += turn == kTurns.end() ? character : turn->second;
      i += length;
    } else {
      out += fmt::format("\\x{:02x}", byte);
      ++i;
    }
  }
  return out;
}

void drop_repeats(std::vector<std::string>& sentences) {
  std::vector<std::string> out;
  for (std::string& sentence : sentences) {
    if (!sentence.empty() && std::find(out.begin(), out.end(), sentence) == out.end()) {
      out.push_back(std::move(sentence));
    }
  }
  sentences = std::move(out);
}

}  // namespace ddpdoctor::base
