// SPDX-License-Identifier: Apache-2.0
// In the notations of shells, Python's print of a dictionary, torchrun, accelerate, vLLM, detectron
// and torch's store clients (c10d/socket.cpp, 1.10 – 2.13).
#include "collector/detectors/evidence/address_notes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "base/lower.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestSearched = 4096;
constexpr std::size_t kLongestHostName = 128;

/// What a value consists of.
enum class Part { kPort, kHost, kBoth };

struct Notation {
  std::string_view word;  // as found in a lower-case line with "_" for "-"
  std::string_view name;  // as reported
  Part part;
};

constexpr std::array<Notation, 7> kNotations = {
    {{"master_port", "MASTER_PORT", Part::kPort},
     {"main_process_port", "--main_process_port", Part::kPort},
     {"master_addr", "MASTER_ADDR", Part::kHost},
     {"main_process_ip", "--main_process_ip", Part::kHost},
     {"rdzv_endpoint", "--rdzv-endpoint", Part::kBoth},
     {"init_method", "init_method", Part::kBoth},
     {"dist_url", "init_method", Part::kBoth}}};

bool of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Lower case, "_" for "-": the same length.
std::string folded(std::string_view line) {
  std::string out = base::lower(line);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

std::string_view host_at(std::string_view text) {
  const bool bracket = text.starts_with('[');
  const auto end = std::find_if(text.begin(), text.end(), [bracket](char c) {
    return !of_word(c) && c != '.' && c != '-' && !(bracket && (c == '[' || c == ':' || c == ']'));
  });
  const std::string_view host = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  return host.size() <= kLongestHostName ? host : std::string_view();
}

std::string_view port_at(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const auto size = static_cast<std::size_t>(end - text.data());
  const bool whole = size == text.size() || !of_word(text[size]);
  return error == std::errc() && whole && port > 0 && port < 65'536 ? text.substr(0, size)
                                                                    : std::string_view();
}

/// The value behind a name: "=29500", ": '29500'", " 29500".
std::string value_at(std::string_view text, Part part) {
  const std::size_t begin = text.find_first_not_of("'\"=: \t");
  const std::string_view between = text.substr(0, std::min(begin, text.size()));
  if (begin == text.npos || between.empty() || between.find("\n") != between.npos) {
    return {};
  }
  text.remove_prefix(begin);
  text.remove_prefix(part == Part::kBoth && text.starts_with("tcp://") ? 6 : 0);
  if (part == Part::kPort) {
    return std::string(port_at(text));
  }
  const std::string_view host = host_at(text);
  if (part == Part::kHost || host.empty()) {
    // "master_addr is not set": a word, not an address.
    return host.find_first_of(".:0123456789") == host.npos && host != "localhost"
               ? std::string()
               : std::string(host);
  }
  const std::string_view rest = text.substr(host.size());
  const std::string_view port =
      rest.starts_with(':') ? port_at(rest.substr(1)) : std::string_view();
  return port.empty() ? std::string() : fmt::format("{}:{}", host, port);
}

std::vector<ShownAddress> written_addresses(std::string_view line) {
  const std::string lower = folded(line);
  std::vector<ShownAddress> out;
  for (const Notation& one : kNotations) {
    for (std::size_t at = lower.find(one.word); at != lower.npos;
         at = lower.find(one.word, at + one.word.size())) {
      const std::size_t end = at + one.word.size();
      const bool option = at >= 2 && lower.compare(at - 2, 2, "__") == 0;
      if (end == line.size() || of_word(line[end]) || (at > 0 && of_word(line[at - 1])) ||
          (at > 0 && (line[at - 1] == '$' || line[at - 1] == '{'))) {
        continue;
      }
      const std::string value = value_at(line.substr(end), one.part);
      const bool upper = std::isupper(static_cast<unsigned char>(line[at])) != 0;
      if (!value.empty()) {
        const std::string name = option && one.name.starts_with("MASTER")
                                     ? (one.part == Part::kPort ? "--master-port" : "--master-addr")
                                     : std::string(one.name);
        out.push_back({.name = name,
                       .notation = fmt::format("{}{}",
                                               option  ? "--"
                                               : upper ? "env "
                                                       : "",
                                               one.word),
                       .value = value});
      }
    }
  }
  return out;
}

/// "(10.0.0.1, 29501)" of torch's store clients.
std::optional<ShownAddress> socket_port(std::string_view line) {
  std::size_t at = line.find("lient socket has ");
  at = at == line.npos ? line.find("No socket on (") : at;
  const std::size_t open = at == line.npos ? at : line.find(" (", at);
  const std::size_t comma = open == line.npos ? open : line.find(", ", open);
  const std::string_view port =
      comma == line.npos ? std::string_view() : port_at(line.substr(comma + 2));
  return port.empty()
             ? std::nullopt
             : std::optional(ShownAddress{
                   .name = "MASTER_PORT", .notation = "socket", .value = std::string(port)});
}

/// "=1", "': '1'", " 1".
std::optional<int> number_set_after(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of("'\"=: "), text.size());
  int number = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), number);
  return error == std::errc() && begin > 0 && number >= 0 && number < model::kMaxWorldSize
             ? std::optional(number)
             : std::nullopt;
}

/// "node1:29500", "[fe80::1]:29500".
std::string with_port(std::string_view host, std::string_view port) {
  const bool bare = host.find(':') != host.npos && !host.starts_with('[');
  return bare ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

/// "--rdzv_endpoint=10.0.0.1", "rdzv_endpoint    : node1:29400": also without a port.
std::string endpoint_as_written(std::string_view line) {
  const std::string lower = folded(line);
  const std::size_t at = lower.find("rdzv_endpoint");
  std::string_view rest = line.substr(at == lower.npos ? line.size() : at + 13);
  const std::size_t begin = rest.find_first_not_of("'\"=: \t");
  if (begin == rest.npos || begin == 0) {
    return {};
  }
  rest.remove_prefix(begin);
  const std::string_view host = host_at(rest);
  const std::string_view port = rest.substr(host.size()).starts_with(':')
                                    ? port_at(rest.substr(host.size() + 1))
                                    : rest.substr(0, 0);
  return host.empty() || host.starts_with("None") ? std::string()
         : port.empty()                           ? std::string(host)
                                                  : with_port(host, port);
}

/// "(10.0.0.1, 29501)" of torch's messages about a store: "of (…", "to (…", "on (…".
std::string address_in_parentheses(std::string_view line) {
  const std::size_t open = line.find(" (");
  const std::size_t comma = open == line.npos ? open : line.find(", ", open);
  if (comma == line.npos) {
    return {};
  }
  const std::string_view host = line.substr(open + 2, comma - open - 2);
  const std::string_view port = port_at(line.substr(comma + 2));
  const bool plain =
      !host.empty() && host.size() <= kLongestHostName && host.find(' ') == host.npos;
  return !plain || port.empty() ? std::string() : with_port(host, port);
}

}  // namespace

std::string store_address(std::string_view line) {
  constexpr std::array<std::string_view, 6> kBefore = {
      "network address of",   "network addresses of", "trying to connect to",
      "failed to connect to", "No socket on",         "initialized to connect to"};
  line = line.substr(0, kLongestSearched);
  for (const std::string_view words : kBefore) {
    const std::size_t at = line.find(words);
    const std::string_view rest = line.substr(at == line.npos ? line.size() : at + words.size());
    if (std::string found = rest.starts_with(" (") ? address_in_parentheses(rest) : std::string();
        !found.empty()) {
      return found;
    }
    if (rest.starts_with(" [")) {  // "[node1]:29500"
      const std::size_t close = rest.find("]:");
      const std::string_view port =
          close == rest.npos ? std::string_view() : port_at(rest.substr(close + 2));
      const std::string_view host = rest.substr(2, close == rest.npos ? 0 : close - 2);
      if (!port.empty() && !host.empty() && host.size() <= kLongestHostName) {
        return with_port(host, port);
      }
    }
  }
  return endpoint_as_written(line);
}

std::vector<ShownAddress> addresses_in(std::string_view line) {
  line = line.substr(0, kLongestSearched);
  std::vector<ShownAddress> out = written_addresses(line);
  if (auto port = socket_port(line)) {
    out.push_back(std::move(*port));
  }
  return out;
}

int number_of_nodes(std::string_view line) {
  // Not "num_nodes", which data sets of graphs print.
  constexpr std::array<std::string_view, 5> kWords = {"nnodes", "min_nodes", "num_machines",
                                                      "NNODES", "group_world_size"};
  int most = 0;
  for (const std::string_view word : kWords) {
    const std::size_t at = line.find(word);
    const std::size_t end = at == line.npos ? line.size() : at + word.size();
    most = std::max(most, number_set_after(line.substr(end)).value_or(0));
  }
  return most;
}

std::optional<int> number_of_node(std::string_view line) {
  const std::string lower = folded(line.substr(0, kLongestSearched));
  for (const std::string_view word : {"node_rank", "machine_rank"}) {
    const std::size_t at = lower.find(word);
    const auto node = at == lower.npos
                          ? std::nullopt
                          : number_set_after(std::string_view(lower).substr(at + word.size()));
    if (node) {
      return node;
    }
  }
  return std::nullopt;
}

std::optional<model::Rank> rank_variable(std::string_view line) {
  const std::string lower = folded(line.substr(0, kLongestSearched));
  for (std::size_t at = lower.find("rank"); at != lower.npos; at = lower.find("rank", at + 1)) {
    const auto rank = at > 0 && of_word(lower[at - 1])
                          ? std::nullopt
                          : number_set_after(std::string_view(lower).substr(at + 4));
    if (rank) {
      return rank;
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
