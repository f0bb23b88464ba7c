// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/host_list.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"

namespace ddpdoctor::nodes {
namespace {

constexpr std::size_t kLongestHostName = 255;

std::optional<std::size_t> whole(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

/// Commas inside brackets separate numbers, not hosts.
std::vector<std::string_view> entries(std::string_view list) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && !inside)) {
      out.push_back(base::trim(list.substr(begin, i - begin)));
      begin = i + 1;
    } else if (list[i] == '[' || list[i] == ']') {
      inside = list[i] == '[';
    }
  }
  return out;
}

/// Expands "03-05" or "7" between `before` and `after`; numbers are padded to the width of the
/// first.
bool add_range(std::string_view range, std::string_view before, std::string_view after,
               std::vector<std::string>& out) {
  const std::size_t dash = range.find('-');
  const std::string_view from = range.substr(0, dash);
  const std::string_view to = dash == std::string_view::npos ? from : range.substr(dash + 1);
  const auto first = whole(from);
  const auto last = whole(to);
  if (!first || !last || *last < *first || *last - *first >= kMostNodes) {
    return false;
  }
  for (std::size_t number = *first; number <= *last; ++number) {
    out.push_back(fmt::format("{}{:0{}}{}", before, number, from.size(), after));
  }
  return true;
}

bool add_entry(std::string_view entry, std::vector<std::string>& out) {
  const std::size_t open = entry.find('[');
  if (open == std::string_view::npos) {
    out.emplace_back(entry);
    return true;
  }
  const std::size_t close = entry.find(']', open);
  if (close == std::string_view::npos) {
    return false;
  }
  const std::string_view ranges = entry.substr(open + 1, close - open - 1);
  const auto parts = base::split(ranges, ',');
  return std::all_of(parts.begin(), parts.end(), [&](std::string_view range) {
    return add_range(range, entry.substr(0, open), entry.substr(close + 1), out);
  });
}

}  // namespace

bool is_host_name(std::string_view name) {
  static constexpr std::string_view kSigns = "._:@%-";
  return !name.empty() && name.size() <= kLongestHostName && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                  (letter >= '0' && letter <= '9') || kSigns.find(letter) != std::string_view::npos;
         });
}

base::Result<std::vector<std::string>> expand_hosts(std::string_view list) {
  std::vector<std::string> all;
  for (const std::string_view entry : entries(list)) {
    if (entry.empty()) {
      continue;
    }
    if (!add_entry(entry, all) || all.size() > kMostNodes) {
      return base::failure(fmt::format("{} is not a list of hosts", base::printable(entry)),
                           fmt::format("write node1,node2 or node[01-16], at most {}", kMostNodes));
    }
  }
  std::vector<std::string> hosts;
  for (std::string& host : all) {
    if (!is_host_name(host)) {
      return base::failure(fmt::format("{} is not the name of a host", base::printable(host)),
                           "a host has letters, digits, dots and dashes: node1,node2");
    }
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) {
      hosts.push_back(std::move(host));
    }
  }
  if (hosts.empty()) {
    return base::failure("no host was given", "name them: --hosts node1,node2");
  }
  return hosts;
}

}  // namespace ddpdoctor::nodes
