// SPDX-License-Identifier: Apache-2.0
// A table has a column of bars, too, but its first cells differ from row to row.
#include "collector/imports/logs/column_labels.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/text.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestService = 64;
constexpr std::size_t kLinesOfService = 4;  // of each service

/// "trainer  | text".
struct Cell {
  std::string_view name;  // empty: the line has no such label
  std::string_view rest;
  std::size_t bar = 0;  // column
};

Cell cell_of(std::string_view line) {
  const std::string_view head = line.substr(0, kLongestService + 2);
  const auto end = std::find_if_not(head.begin(), head.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
  const auto length = static_cast<std::size_t>(end - head.begin());
  const std::size_t bar = head.find_first_not_of(' ', length);
  if (length == 0 || bar == head.npos || bar == length || head[bar] != '|') {
    return {};
  }
  std::string_view rest = line.substr(bar + 1);
  if (!rest.empty() && rest.front() != ' ' && rest.front() != '\r') {
    return {};
  }
  take_prefix(rest, " ");
  return {.name = head.substr(0, length), .rest = rest, .bar = bar};
}

}  // namespace

std::string without_column(const std::vector<std::string_view>& lines) {
  std::map<std::string_view, std::vector<std::string_view>> services;
  std::vector<std::string_view> order;
  std::vector<std::string_view> others;
  std::size_t bar = 0;
  for (const std::string_view line : lines) {
    const Cell cell = cell_of(line);
    const bool labelled =
        !cell.name.empty() && !model::read_log_line(line.substr(0, kLongestLogLine)).rank;
    if (!labelled || (bar != 0 && cell.bar != bar)) {
      if (!base::trim(line).empty()) {
        others.push_back(line);
      }
      continue;
    }
    bar = cell.bar;
    auto& service = services[cell.name];
    if (service.empty()) {
      order.push_back(cell.name);
    }
    service.push_back(cell.rest);
  }
  std::size_t fit = 0;
  for (const auto& [name, own] : services) {
    fit += own.size();
  }
  if (fit < services.size() * kLinesOfService || fit == 0 || others.size() * 10 > fit) {
    return {};
  }
  std::string out;
  for (const std::string_view name : order) {
    for (const std::string_view line : services[name]) {
      out += line;
      out += '\n';
    }
  }
  for (const std::string_view line : others) {
    out += line;
    out += '\n';
  }
  return out;
}

}  // namespace ddpdoctor::imports
