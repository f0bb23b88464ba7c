// SPDX-License-Identifier: Apache-2.0
// "[node2][[38971,1],3][btl_tcp_endpoint.c:796:mca_btl_tcp_endpoint_complete_connect] connect() to
// 172.17.0.1 failed: Connection refused (111)"; from 4.0 on a help text with "Message: connect() to
// 10.0.0.7:1024 failed". "At least one pair of MPI processes are unable to reach each other". UCX:
// "no active messages transport to". A process that has ended refuses connections, too: only an
// address that other hosts cannot reach, or a missing route, is more than possible.
#include "collector/detectors/evidence/mpi_network.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/evidence/written_after.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestMpiLine = 240;
constexpr std::size_t kMostAddresses = 4;
constexpr std::size_t kLongestMpiAddress = 64;
constexpr std::string_view kConnectTo = "connect() to ";
constexpr std::string_view kDockerDefault = "172.17.0.1";

struct FailedConnections {
  std::set<std::string> addresses;
  model::RankSet ranks;
  std::vector<std::string> lines;
  bool no_route = false;
  bool no_transport = false;  // no library of MPI can connect them

  void quote(std::string_view line) {
    constexpr std::size_t kMostQuotes = 4;
    std::string text = base::elide(base::printable(base::trim(line)), kLongestMpiLine);
    if (lines.size() < kMostQuotes && std::find(lines.begin(), lines.end(), text) == lines.end()) {
      lines.push_back(std::move(text));
    }
  }
};

/// "[[38971,1],3]": rank 3 of the program; "[[38971,0],2]" is a daemon.
std::optional<model::Rank> rank_of_name(std::string_view line) {
  const std::size_t open = line.find("[[");
  const std::size_t close = open == line.npos ? open : line.find("],", open);
  if (close == line.npos || line.substr(open, close - open).ends_with(",0")) {
    return std::nullopt;
  }
  model::Rank rank = -1;
  const char* const begin = line.data() + close + 2;
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), rank);
  const bool closed = error == std::errc() && end < line.data() + line.size() && *end == ']';
  return closed && rank >= 0 && rank < model::kMaxWorldSize ? std::optional(rank) : std::nullopt;
}

/// "172.17.0.1" of "connect() to 172.17.0.1:1024 failed".
std::string address_in(std::string_view line) {
  const std::size_t at = line.find(kConnectTo);
  if (at == line.npos) {
    return {};
  }
  const std::string_view rest = line.substr(at + kConnectTo.size(), kLongestMpiAddress);
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t,"));
  const bool v4 = std::count(word.begin(), word.end(), ':') == 1;
  return base::printable(v4 ? word.substr(0, word.find(':')) : word);
}

void read_mpi_line(std::string_view line, std::optional<model::Rank> rank, FailedConnections& out) {
  constexpr std::array<std::string_view, 4> kNoTransport = {
      "pair of MPI processes are unable to reach each other",
      "at least one MPI process is unreachable", "no active messages transport to ",
      "no remote registered memory access transport to "};
  if (std::any_of(kNoTransport.begin(), kNoTransport.end(),
                  [line](std::string_view words) { return base::contains(line, words); })) {
    out.no_transport = true;
    out.quote(line);
    return;
  }
  const bool of_btl =
      base::contains(line, "btl_tcp_endpoint") || base::trim(line).starts_with("Message:");
  const bool of_ucx = base::contains(line, "UCX") && base::contains(line, "ERROR");
  if (!base::contains(line, kConnectTo) || !base::contains(line, " failed") ||
      (!of_btl && !of_ucx)) {
    return;
  }
  if (out.addresses.size() < kMostAddresses) {
    out.addresses.insert(address_in(line));
  }
  out.no_route = out.no_route || base::contains(line, "No route to host") ||
                 base::contains(line, "unreachable");
  if (const auto named = rank ? rank : rank_of_name(line)) {
    out.ranks.insert(*named);
  }
  out.quote(line);
}

FailedConnections failed_connections(const model::JobModel& job) {
  FailedConnections out;
  for (const model::Log& log : job.logs) {
    for (const std::string_view raw : base::split(log.text, '\n')) {
      const model::LogLine line = model::read_log_line(raw.substr(0, 4096));
      read_mpi_line(line.text, line.rank, out);
    }
  }
  out.addresses.erase("");
  return out;
}

/// An address of a bridge or of the host itself: other hosts have the same one.
bool is_local_only(std::string_view interface, std::string_view address) {
  return interface.starts_with("docker") || interface.starts_with("virbr") ||
         interface.starts_with("br-") || interface.starts_with("lxcbr") ||
         interface.starts_with("cni") || interface == "lo" || address == kDockerDefault ||
         address.starts_with("127.");
}

std::string with_interface(const std::string& address, std::string_view interface) {
  if (!interface.empty()) {
    return fmt::format("{} ({})", address, interface);
  }
  return address == kDockerDefault ? address + " (by default docker0)" : address;
}

}  // namespace

std::string interface_with(const model::JobModel& job, std::string_view address) {
  for (const model::Log& log : job.logs) {
    std::string name;
    for (const std::string_view line : base::split(log.text, '\n')) {
      const bool heads = !line.empty() && line.front() != ' ' && line.front() != '\t';
      if (heads && (base::contains(line, "Link encap:") || base::contains(line, ": flags=") ||
                    base::contains(line, ": <"))) {
        std::string_view head = line;
        const std::size_t number = base::contains(line, ": <") ? head.find(": ") : head.npos;
        head = number == head.npos ? head : head.substr(number + 2);  // "3: docker0: <…>"
        name = base::printable(
            head.substr(0, std::min(head.find_first_of(" :@"), kLongestMpiAddress)));
      }
      const std::size_t at = line.find("inet ");
      std::string_view rest = at == line.npos ? std::string_view() : line.substr(at + 5);
      if (rest.starts_with("addr:")) {
        rest.remove_prefix(5);
      }
      if (!heads && !rest.empty() && rest.substr(0, rest.find_first_of(" /")) == address) {
        return name;
      }
    }
  }
  return {};
}

Findings unreachable_in_mpi(const graph::Examination& examination, std::string_view kind) {
  const model::JobModel& job = examination.job;
  const FailedConnections failed = failed_connections(job);
  if (failed.lines.empty() || output_goes_on(job)) {
    return {};
  }
  Finding finding;
  finding.kind = kind;
  finding.waiting = failed.ranks;
  std::vector<std::string> shown;
  std::set<std::string> bridges;
  for (const std::string& address : failed.addresses) {
    const std::string interface = interface_with(job, address);
    shown.push_back(with_interface(address, interface));
    if (is_local_only(interface, address)) {
      bridges.insert(interface.empty() ? "docker0" : interface);
    }
  }
  const std::string who = failed.ranks.empty() ? "a rank" : said(failed.ranks);
  const bool sure = !bridges.empty() || failed.no_route || failed.no_transport;
  finding.confidence = sure ? Confidence::kLikely : Confidence::kPossible;
  finding.summary =
      shown.empty()
          ? std::string("MPI found no transport between two of its ranks")
          : fmt::format("{} could not connect to {} through MPI{}", who, fmt::join(shown, " and "),
                        bridges.empty() ? "" : ", which other hosts cannot reach");
  bridges.insert("lo");
  finding.fix =
      shown.empty()
          ? "Run `ompi_info` or `ucx_info -d` on both hosts; do not exclude tcp, and name an "
            "interface with btl_tcp_if_include or UCX_NET_DEVICES."
          : fmt::format(
                "Pass `--mca btl_tcp_if_exclude {}` to mpirun, or name the interface that reaches "
                "all hosts with btl_tcp_if_include and oob_tcp_if_include.",
                fmt::join(bridges, ","));
  if (!sure) {
    finding.fix = "Check whether the process at that address has ended first. " + finding.fix;
  }
  for (const std::string& line : failed.lines) {
    finding.evidence.push_back({.rank = {}, .text = "log: " + line});
  }
  return {finding};
}

}  // namespace ddpdoctor::detectors
