// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/line_numbers.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/text.h"
#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLeastNumbered = 6;  // fewer may be a list of the log itself
constexpr std::int64_t kMostLineNumber = 1'000'000'000;

struct NumberedLine {
  std::int64_t number = 0;
  std::string_view rest;  // with the blanks behind the number
};

std::optional<NumberedLine> numbered(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const bool bracket = line.starts_with('[');
  line.remove_prefix(bracket ? 1 : 0);
  const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  const auto number = number_of(line.substr(0, digits), kMostLineNumber);
  if (!number) {
    return std::nullopt;
  }
  line.remove_prefix(digits);
  const bool marked =
      bracket ? line.starts_with(']') : line.starts_with(':') || line.starts_with('|');
  if (bracket && !marked) {
    return std::nullopt;
  }
  line.remove_prefix(marked ? 1 : 0);
  if (!line.empty() && !line.starts_with(' ') && !line.starts_with('\t') &&
      !line.starts_with('\r')) {
    return std::nullopt;
  }
  return NumberedLine{.number = *number, .rest = line};
}

}  // namespace

std::optional<std::string> without_line_numbers(std::string_view text) {
  std::vector<NumberedLine> lines;
  for (const std::string_view line :
       base::split(text.substr(0, text.find_last_not_of("\n\r") + 1), '\n')) {
    const auto one = numbered(line);
    if (!one || (!lines.empty() && one->number != lines.back().number + 1)) {
      return std::nullopt;
    }
    lines.push_back(*one);
  }
  if (lines.size() < kLeastNumbered) {
    return std::nullopt;
  }
  std::string out;
  out.reserve(text.size());
  for (const NumberedLine& line : lines) {
    out += line.rest.substr(std::min<std::size_t>(1, line.rest.size()));
    out += '\n';
  }
  return out;
}

}  // namespace ddpdoctor::imports
