// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/labels.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestLine = 65'536;
constexpr std::size_t kLongestHost = 64;
constexpr std::size_t kMostHosts = 4096;
constexpr std::size_t kMostNamed = 8;  // hosts that a warning names

/// "3: text" of srun --label and "[3] text" of MPICH: a mere number is a rank when nearly every
/// line has one and there are several.
bool numbered_lines(const std::vector<std::string_view>& lines, char open, char close) {
  std::size_t fit = 0;
  std::size_t all = 0;
  std::set<std::int64_t> numbers;
  for (std::string_view line : lines) {
    line = model::read_log_line(line.substr(0, kLongestLine)).text;
    all += base::trim(line).empty() ? 0 : 1;
    line = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (open != 0 && !take_prefix(line, std::string_view(&open, 1))) {
      continue;
    }
    const auto number = take_number(line, model::kMaxWorldSize - 1);
    if (number && line.starts_with(close)) {
      ++fit;
      numbers.insert(*number);
    }
  }
  return numbers.size() > 1 && fit * 10 >= all * 9;
}

/// The text with "[rank3]: " for such numbers; empty when there are none.
std::string with_numbers_as_ranks(std::string_view text) {
  const auto lines = base::split(text, '\n');
  const bool labelled = numbered_lines(lines, 0, ':');
  const bool bracketed = !labelled && numbered_lines(lines, '[', ']');
  if (!labelled && !bracketed) {
    return {};
  }
  std::string out;
  out.reserve(text.size() + lines.size() * 8);
  for (std::string_view line : lines) {
    std::string_view rest = model::read_log_line(line.substr(0, kLongestLine)).text;
    const auto prefix = line.substr(0, static_cast<std::size_t>(rest.data() - line.data()));
    const bool whole = line.size() <= kLongestLine;
    rest = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
    take_prefix(rest, bracketed ? "[" : "");
    const auto number = take_number(rest, model::kMaxWorldSize - 1);
    if (whole && number && take_prefix(rest, bracketed ? "]" : ":")) {
      take_prefix(rest, " ");
      out += fmt::format("{}[rank{}]: {}\n", prefix, *number, rest);
    } else {
      out += line;
      out += '\n';
    }
  }
  return out;
}

/// "node3" of "node3: text": a name with a number in it.
std::string_view host_of(std::string_view line) {
  const std::size_t colon = line.substr(0, kLongestHost + 2).find(": ");
  const std::size_t end = colon == line.npos && line.size() <= kLongestHost && line.ends_with(':')
                              ? line.size() - 1
                              : colon;
  if (end == line.npos || end == 0) {
    return {};
  }
  const std::string_view host = line.substr(0, end);
  const bool named = std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
  const bool numbered =
      std::any_of(host.begin(), host.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return named && numbered && !host.starts_with("rank") ? host : std::string_view();
}

/// "node#" of "node12": what hosts of one cluster share.
std::string shape_of(std::string_view host) {
  std::string out;
  for (const char c : host) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit || !out.ends_with('#')) {
      out += digit ? '#' : c;
    }
  }
  return out;
}

std::vector<std::int64_t> numbers_of(std::string_view host) {
  std::vector<std::int64_t> out;
  while (!host.empty()) {
    if (const auto number = take_number(host, INT64_MAX)) {
      out.push_back(*number);
    } else {
      host.remove_prefix(1);
    }
  }
  return out;
}

/// The hosts that nearly every line begins with, in the order of their numbers; empty when there
/// are none, or one only.
std::vector<std::string_view> hosts_in(const std::vector<std::string_view>& lines) {
  std::size_t fit = 0;
  std::size_t all = 0;
  std::set<std::string_view> hosts;
  std::string shape;
  for (const std::string_view line : lines) {
    all += base::trim(line).empty() ? 0 : 1;
    const std::string_view host = host_of(line);
    if (host.empty() || hosts.size() > kMostHosts) {
      continue;
    }
    if (hosts.contains(host)) {
      ++fit;
      continue;
    }
    shape = hosts.empty() ? shape_of(host) : shape;
    if (shape_of(host) == shape) {
      hosts.insert(host);
      ++fit;
    }
  }
  if (hosts.size() < 2 || hosts.size() > kMostHosts || fit * 10 < all * 9) {
    return {};
  }
  std::vector<std::string_view> out(hosts.begin(), hosts.end());
  std::stable_sort(out.begin(), out.end(), [](std::string_view a, std::string_view b) {
    return numbers_of(a) < numbers_of(b);
  });
  return out;
}

/// Behind a host's name a line names its rank, or a launcher runs that has several ranks on a host.
bool names_ranks(const std::vector<std::string_view>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    const std::string_view host = host_of(line);
    line = line.substr(0, kLongestLine);
    line.remove_prefix(host.empty() ? 0 : std::min(host.size() + 2, line.size()));
    return model::read_log_line(line).rank.has_value() ||
           line.find("torch/distributed/run.py") != line.npos ||
           line.find("torch/distributed/elastic") != line.npos;
  });
}

Labels with_hosts_as_ranks(const std::vector<std::string_view>& lines,
                           const std::vector<std::string_view>& hosts) {
  Labels out;
  std::map<std::string_view, std::size_t> ranks;
  const bool named = names_ranks(lines);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    ranks.emplace(hosts[i], i);
    if (!named && i < kMostNamed) {
      out.warning += fmt::format("{}rank {} is {}", i == 0 ? ": " : ", ", i, hosts[i]);
    }
  }
  for (const std::string_view line : lines) {
    const std::string_view host = host_of(line);
    const auto rank = ranks.find(host);
    if (rank == ranks.end() || line.size() > kLongestLine) {
      out.text += line;
    } else {
      const std::string_view rest = line.substr(std::min(host.size() + 2, line.size()));
      out.text += named ? std::string(rest) : fmt::format("[rank{}]: {}", rank->second, rest);
    }
    out.text += '\n';
  }
  if (!named) {
    out.warning = fmt::format(
        "the log names hosts and no ranks; they are numbered in the order of their names{}",
        base::printable(out.warning));
  }
  return out;
}

}  // namespace

Labels with_ranks_named(std::string_view text) {
  if (std::string renamed = with_numbers_as_ranks(text); !renamed.empty()) {
    return {.text = std::move(renamed), .warning = {}};
  }
  const auto lines = base::split(text, '\n');
  const auto hosts = hosts_in(lines);
  return hosts.empty() ? Labels{} : with_hosts_as_ranks(lines, hosts);
}

}  // namespace ddpdoctor::imports
