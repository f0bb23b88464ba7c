// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/joined_lines.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kShortestLabel = 4;
constexpr std::size_t kLongestWriter = 64;
constexpr std::size_t kLeastLabelled = 4;  // lines that begin with a label
constexpr std::size_t kMostWriters = 4096;
constexpr std::size_t kLongestJoined = 4096;

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// A label ends here: "node12: ", "[default3]:".
bool ends_label(std::string_view line, std::size_t colon) {
  return line.substr(colon).starts_with(": ") || line.substr(0, colon).ends_with(']');
}

/// "node12", "[rank3]": one word with a number at its end.
std::string_view label_at_start(std::string_view line) {
  const std::size_t end = line.substr(0, kLongestWriter + 1).find(':');
  if (end == line.npos || end < kShortestLabel || !ends_label(line, end)) {
    return {};
  }
  const std::string_view label = line.substr(0, end);
  const bool word = std::all_of(label.begin(), label.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '[' || c == ']';
  });
  const bool bracketed = label.front() == '[' && label.back() == ']';
  const char last = bracketed ? label[label.size() - 2] : label.back();
  return word && is_digit(last) && !is_digit(label.front()) ? label : std::string_view();
}

/// The labels with which nearly every line begins; empty if there are none.
std::set<std::string_view> labels_of(const std::vector<std::string_view>& lines) {
  std::map<std::string_view, std::size_t> times;
  std::size_t all = 0;
  std::size_t labelled = 0;
  for (const std::string_view line : lines) {
    all += base::trim(line).empty() ? 0 : 1;
    const std::string_view label = label_at_start(line);
    if (!label.empty() && times.size() < kMostWriters) {
      ++times[label];
      ++labelled;
    }
  }
  std::set<std::string_view> out;
  for (const auto& [label, count] : times) {
    if (count >= kLeastLabelled) {
      out.insert(label);
    }
  }
  return labelled * 10 >= all * 9 ? out : std::set<std::string_view>{};
}

/// What a writer leaves without a line break: a name of a function, a number, a call.
bool ends_a_text(std::string_view before) {
  const char last = before.back();
  return std::isalnum(static_cast<unsigned char>(last)) != 0 || last == ')' || last == ']' ||
         before.ends_with("):");
}

/// Where the first joined line begins; npos if there is none.
std::size_t joined_at(std::string_view line, const std::set<std::string_view>& labels,
                      const std::set<std::size_t>& lengths) {
  std::size_t colon = line.find(':', kShortestLabel + 1);
  for (; colon != line.npos; colon = line.find(':', colon + 1)) {
    for (const std::size_t length : ends_label(line, colon) ? lengths : std::set<std::size_t>{}) {
      const std::size_t begin = colon < length ? 0 : colon - length;
      if (begin > 0 && labels.contains(line.substr(begin, length)) &&
          ends_a_text(line.substr(0, begin))) {
        return begin;
      }
    }
  }
  return line.npos;
}

}  // namespace

std::optional<std::string> without_joined_lines(std::string_view text) {
  const auto lines = base::split(text, '\n');
  const std::set<std::string_view> labels = labels_of(lines);
  if (labels.size() < 2) {
    return std::nullopt;  // one writer
  }
  std::set<std::size_t> lengths;
  for (const std::string_view label : labels) {
    lengths.insert(label.size());
  }
  std::string out;
  out.reserve(text.size() + lines.size());
  bool any = false;
  for (std::string_view line : lines) {
    std::size_t at = line.size() > kLongestJoined ? line.npos : joined_at(line, labels, lengths);
    for (; at != line.npos; at = joined_at(line, labels, lengths)) {
      out += line.substr(0, at);
      out += '\n';
      line.remove_prefix(at);
      any = true;
    }
    out += line;
    out += '\n';
  }
  out.pop_back();
  return any ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace ddpdoctor::imports
