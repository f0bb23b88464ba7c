// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/clock_column.h"

#include <array>
#include <cctype>
#include <cstddef>

#include "base/text.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kFewest = 5;  // lines
constexpr std::size_t kOf = 20;     // one of so many may lack the time

bool is_digit_of_clock(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// The length of "18:11:06 ", "18:11:06.552 "; 0 if the line does not begin with it.
std::size_t clock_at_start(std::string_view line) {
  constexpr std::string_view kShape = "00:00:00";
  std::size_t at = 0;
  for (; at < kShape.size(); ++at) {
    if (at >= line.size() || (kShape[at] == '0' ? !is_digit_of_clock(line[at]) : line[at] != ':')) {
      return 0;
    }
  }
  if (at < line.size() && (line[at] == '.' || line[at] == ',')) {
    do {
      ++at;
    } while (at < line.size() && is_digit_of_clock(line[at]));
  }
  return at < line.size() && line[at] == ' ' ? at + 1 : 0;
}

bool begins_with_rank(std::string_view line) {
  constexpr std::array<std::string_view, 2> kLabels = {"[rank", "[default"};
  return base::begins_with_any(base::trim(line), kLabels);
}

}  // namespace

std::optional<std::string> without_clock_column(std::string_view text) {
  if (clock_at_start(text) == 0) {
    return std::nullopt;
  }
  const auto lines = base::split(text, '\n');
  std::size_t full = 0;
  std::size_t timed = 0;
  bool labelled = false;
  for (const std::string_view line : lines) {
    const std::size_t clock = clock_at_start(line);
    full += base::trim(line).empty() ? 0 : 1;
    timed += clock > 0 ? 1 : 0;
    labelled = labelled || (clock > 0 && begins_with_rank(line.substr(clock)));
  }
  if (!labelled || timed < kFewest || (full - timed) * kOf > full) {
    return std::nullopt;
  }
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += lines[i].substr(clock_at_start(lines[i]));
    out += i + 1 < lines.size() ? "\n" : "";
  }
  return out;
}

}  // namespace ddpdoctor::imports
