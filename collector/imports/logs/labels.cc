// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/labels.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/logs/column_labels.h"
#include "collector/imports/logs/prefix_shape.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestHost = 64;
constexpr std::size_t kMostHosts = 4096;
constexpr std::size_t kLeastLines = 4;  // lines of each container
constexpr std::size_t kMostLabels = 8;  // hosts that a warning names

/// A launcher's own messages have no rank label.
bool is_of_launcher(std::string_view line) {
  constexpr std::array<std::string_view, 4> kLaunchers = {"srun: ", "slurmstepd: ", "[mpiexec@",
                                                          "[proxy:"};
  return std::any_of(kLaunchers.begin(), kLaunchers.end(),
                     [line](std::string_view begins) { return line.starts_with(begins); });
}

/// "3: text" of srun --label and "[3] text" of MPICH: a number alone is a rank if nearly every line
/// has one and there are several.
bool numbered_lines(const std::vector<std::string_view>& lines, char open, char close) {
  std::size_t fit = 0;
  std::size_t all = 0;
  std::set<std::int64_t> numbers;
  for (std::string_view line : lines) {
    line = model::read_log_line(line.substr(0, kLongestLogLine)).text;
    all += base::trim(line).empty() || is_of_launcher(line) ? 0 : 1;
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

/// The text with "[rank3]: " for such numbers; empty if there are none.
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
    std::string_view rest = model::read_log_line(line.substr(0, kLongestLogLine)).text;
    const auto prefix = line.substr(0, static_cast<std::size_t>(rest.data() - line.data()));
    const bool whole = line.size() <= kLongestLogLine;
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

/// The prefix of a line that names a machine, a container or a process.
struct Tag {
  std::string_view name;  // empty: no prefix
  std::string_view rest;
  bool sure = false;   // even a single name counts as a prefix
  bool words = false;  // may be words of the log: counts only before a dump or a traceback
  std::string_view before = {};  // the time in front of it
};

/// A name that contains a number.
bool is_host(std::string_view host) {
  const bool named = std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
  const bool numbered =
      std::any_of(host.begin(), host.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return !host.empty() && host.size() <= kLongestHost && named && numbered &&
         !host.starts_with("rank");
}

/// "node3: text" of pdsh.
Tag pdsh_tag(std::string_view line) {
  const std::size_t colon = line.substr(0, kLongestHost + 2).find(": ");
  const std::size_t end = colon == line.npos && line.size() <= kLongestHost && line.ends_with(':')
                              ? line.size() - 1
                              : colon;
  if (end == line.npos || !is_host(line.substr(0, end))) {
    return {};
  }
  return {.name = line.substr(0, end), .rest = line.substr(std::min(end + 2, line.size()))};
}

/// "trainer-0  | text" of docker compose.
Tag compose_tag(std::string_view line) {
  const std::string_view head = line.substr(0, kLongestHost + 2);
  const std::size_t space = head.find(' ');
  const std::size_t bar = head.find_first_not_of(' ', space);
  if (space == head.npos || bar == head.npos || head[bar] != '|' ||
      !is_host(head.substr(0, space))) {
    return {};
  }
  line.remove_prefix(bar + 1);
  take_prefix(line, " ");
  return {.name = head.substr(0, space), .rest = line, .sure = true};
}

/// "trainer-0 torch text" of stern: a pod and a container.
Tag stern_tag(std::string_view line) {
  const std::string_view head = line.substr(0, kLongestHost + 2);
  const std::size_t pod = head.find(' ');
  const std::size_t end = pod == head.npos ? pod : std::min(head.find(' ', pod + 1), line.size());
  if (end == head.npos || end > head.size() || !is_host(head.substr(0, pod)) ||
      head.substr(0, pod).find('-') == head.npos) {
    return {};
  }
  const std::string_view container = head.substr(pod + 1, end - pod - 1);
  const bool named = std::all_of(container.begin(), container.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-';
  });
  if (!named || container.empty()) {
    return {};
  }
  line.remove_prefix(end);
  take_prefix(line, " ");
  return {.name = head.substr(0, end), .rest = line, .sure = true, .words = true};
}

/// "[pod/trainer-0/torch] text" of kubectl logs --prefix.
Tag kubectl_tag(std::string_view line) {
  constexpr std::string_view kPod = "[pod/";
  const std::size_t end = line.substr(0, 2 * kLongestHost).find("] ");
  if (!line.starts_with(kPod) || end == line.npos) {
    return {};
  }
  const std::string_view pod = line.substr(kPod.size(), end - kPod.size());
  return {.name = pod.substr(0, pod.find('/')), .rest = line.substr(end + 2), .sure = true};
}

/// "Nov 22 19:15:00 node0 python[31098]: text" of journald and syslog.
Tag journal_tag(std::string_view line) {
  constexpr std::size_t kTime = 16;  // "Nov 22 19:15:00 "
  const std::string_view head = line.substr(0, kTime + kLongestHost + 2);
  const auto digit_at = [head](std::size_t at) {
    return std::isdigit(static_cast<unsigned char>(head[at])) != 0;
  };
  const std::size_t end = head.find("]: ", kTime);
  const bool whole = end == head.npos && line.size() <= head.size() && line.ends_with("]:");
  if (head.size() <= kTime || head[3] != ' ' || head[6] != ' ' || head[9] != ':' ||
      head[12] != ':' || head[15] != ' ' || !digit_at(8) || !digit_at(11) || !digit_at(14) ||
      (end == head.npos && !whole)) {
    return {};
  }
  const std::size_t length = (whole ? line.size() - 1 : end + 1);
  const std::string_view name = line.substr(kTime, length - kTime);
  const std::size_t space = name.find(' ');
  const std::size_t open = name.rfind('[');
  if (space == name.npos || open == name.npos || open < space ||
      !number_of(name.substr(open + 1, name.size() - open - 2), INT32_MAX)) {
    return {};
  }
  return {.name = name, .rest = line.substr(std::min(length + 2, line.size())), .sure = true};
}

Tag tag_of(std::string_view line) {
  const model::LogLine read = model::read_log_line(line.substr(0, kLongestLogLine));
  const auto time = read.rank || line.size() > kLongestLogLine
                        ? std::size_t{0}
                        : static_cast<std::size_t>(read.text.data() - line.data());
  for (const std::size_t begin : {std::size_t{0}, time}) {
    for (Tag (*const one)(std::string_view) :
         {kubectl_tag, journal_tag, compose_tag, pdsh_tag, stern_tag}) {
      if (Tag tag = one(line.substr(begin)); !tag.name.empty()) {
        tag.before = line.substr(0, begin);
        return tag;
      }
    }
  }
  return {};
}

/// "node#" of "node12": the common form of a cluster's host names.
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

/// The hosts with which nearly every line begins, ordered by number; empty if there are none, or
/// only one that may be a word of the log: no program repeats its own word before the heading of a
/// traceback.
std::vector<std::string_view> hosts_in(const std::vector<std::string_view>& lines) {
  std::size_t fit = 0;
  std::size_t all = 0;
  std::set<std::string_view> hosts;
  std::string shape;
  bool sure = true;
  bool words = false;
  bool indented = false;
  bool before_heading = false;
  for (const std::string_view line : lines) {
    all += base::trim(line).empty() ? 0 : 1;
    const Tag tag = tag_of(line);
    const std::string_view host = tag.name;
    indented = indented || tag.rest.starts_with("  ") || tag.rest.starts_with("#0  ");
    before_heading = before_heading || tag.rest.starts_with("Traceback (most recent call last)");
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
      sure = sure && tag.sure;
      words = words || tag.words;
      ++fit;
    }
  }
  // "epoch-1 loss 0.3", "epoch-2 loss 0.2": names that rarely repeat are not hosts.
  const bool again = hosts.size() * kLeastLines <= fit && (indented || !words);
  const bool enough =
      hosts.size() > 1 ? !sure || again : hosts.size() == 1 && (sure || before_heading) && again;
  if (!enough || hosts.size() > kMostHosts || fit * 10 < all * 9) {
    return {};
  }
  std::vector<std::string_view> out(hosts.begin(), hosts.end());
  std::stable_sort(out.begin(), out.end(), [](std::string_view a, std::string_view b) {
    return numbers_in(a) < numbers_in(b);
  });
  return out;
}

/// The lines name their rank after the host, or belong to a launcher with several ranks per host.
bool names_ranks(const std::vector<std::string_view>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    const Tag tag = tag_of(line);
    line = (tag.name.empty() ? line : tag.rest).substr(0, kLongestLogLine);
    return model::read_log_line(line).rank.has_value() ||
           line.find("torch/distributed/run.py") != line.npos ||
           line.find("torch/distributed/elastic") != line.npos;
  });
}

Labels with_hosts_as_ranks(const std::vector<std::string_view>& lines,
                           const std::vector<std::string_view>& hosts) {
  Labels out;
  std::map<std::string_view, std::size_t> ranks;
  const bool named = hosts.size() == 1 || names_ranks(lines);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    ranks.emplace(hosts[i], i);
    out.hosts.emplace_back(hosts[i].substr(0, hosts[i].find(' ')));
    if (!named && i < kMostLabels) {
      out.warning += fmt::format("{}rank {} is {}", i == 0 ? ": " : ", ", i, hosts[i]);
    }
  }
  for (const std::string_view line : lines) {
    const Tag tag = tag_of(line);
    const auto rank = ranks.find(tag.name);
    if (rank == ranks.end() || line.size() > kLongestLogLine) {
      out.text += line;
    } else {
      out.text += tag.before;
      out.text +=
          named ? std::string(tag.rest) : fmt::format("[rank{}]: {}", rank->second, tag.rest);
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
    return {.text = std::move(renamed), .warning = {}, .hosts = {}};
  }
  const auto lines = base::split(text, '\n');
  const auto hosts = hosts_in(lines);
  Labels out = hosts.empty() ? with_shape_as_ranks(lines) : with_hosts_as_ranks(lines, hosts);
  if (out.text.empty()) {
    out.text = without_column(lines);
  }
  return out;
}

}  // namespace ddpdoctor::imports
