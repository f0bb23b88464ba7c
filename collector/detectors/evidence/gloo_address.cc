// SPDX-License-Identifier: Apache-2.0
// torch warns if the name of its host resolves to no address of the host (ProcessGroupGloo.cpp and
// GlooDeviceFactory.cpp, 1.5 – 2.13) and then uses 127.0.0.1; if the name resolves to 127.0.1.1
// (Debian's /etc/hosts), only the connections fail (gloo/transport/tcp/pair.cc).
#include "collector/detectors/evidence/gloo_address.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/address_notes.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/written_after.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestGlooLine = 240;
constexpr std::size_t kMostGlooLines = 4;
constexpr std::size_t kMostHostNames = 4096;

bool warns_of_loopback(std::string_view line) {
  return line.find("Using the loopback address as fallback") != line.npos &&
         line.find("GLOO_SOCKET_IFNAME") != line.npos;
}

/// "connect [127.0.1.1]:60817: Connection refused", "timed out connecting: SO_ERROR: Connection
/// refused, remote=[127.0.0.1]:14215", "Connect timeout [127.0.0.1]:4711".
bool loopback_failed(std::string_view line) {
  constexpr std::array<std::string_view, 3> kPeers = {"remote=[127.", "onnect [127.",
                                                      "onnect timeout [127."};
  const bool of_gloo = line.find("onnectFullMesh failed") != line.npos ||
                       line.find("pair.cc:") != line.npos ||
                       line.find("failed to connect, willRetry=") != line.npos;
  return of_gloo && base::contains_any(line, kPeers);
}

/// It names no address: "Gloo connectFullMesh failed with [../pair.cc:144] no error".
bool mesh_failed(std::string_view line) {
  return line.find("Gloo connectFullMesh failed with ") != line.npos;
}

/// "(RayTrainWorker pid=7, ip=10.0.0.3)": Ray names the host of an actor on a different host.
std::string_view host_of_actor(std::string_view line) {
  const std::size_t at = line.find(", ip=");
  const std::string_view rest = line.substr(at == line.npos ? line.size() : at + 5);
  return rest.substr(0, std::min(rest.find(')'), rest.size()));
}

/// "2 nodes", "hosts"; empty for one host.
std::string several_hosts(const model::JobModel& job) {
  std::set<std::string> hosts(job.hosts.begin(), job.hosts.end());
  for (const model::Observation& observation : job.observations) {
    for (const model::Process& process : observation.processes) {
      hosts.insert(process.host);
    }
  }
  for (const model::Fact& fact : job.facts) {
    hosts.insert(fact.text("host").value_or(""));
  }
  hosts.erase("");
  int nodes = 0;
  std::set<std::string> actors;
  for (const model::Log& log : job.logs) {
    for (const std::string_view line : base::split(log.text, '\n')) {
      nodes = std::max(nodes, number_of_nodes(line));
      const std::string_view actor = host_of_actor(line);
      if (!actor.empty() && actors.size() < kMostHostNames) {
        actors.emplace(actor);
      }
    }
  }
  const std::size_t count = std::max(hosts.size(), static_cast<std::size_t>(nodes));
  if (count > 1) {
    return fmt::format("{} {}", count, hosts.size() > 1 ? "hosts" : "nodes");
  }
  // Beside them, the host of the driver, whose actors have no address in their labels.
  return actors.empty() ? std::string() : fmt::format("{} hosts", actors.size() + 1);
}

/// The lines that a finding quotes, each once, and the ranks that wrote them.
struct Quotes {
  model::RankSet ranks;
  std::vector<Evidence> evidence;

  void add(const LogLine& line) {
    ranks = line.rank ? ranks.united({*line.rank}) : ranks;
    const std::string text = base::elide(base::printable(base::trim(line.text)), kLongestGlooLine);
    if (evidence.size() < kMostGlooLines && told_.insert(text).second) {
      evidence.push_back({.rank = line.rank, .text = "log: " + text});
    }
  }

 private:
  std::set<std::string> told_;
};

template <class Visit>
void each_line(const model::JobModel& job, const Visit& visit) {
  for (const LogStream& stream : job.logs.empty() ? std::vector<LogStream>() : log_streams(job)) {
    for (const LogLine& line : stream) {
      visit(line);
    }
  }
}

}  // namespace

std::optional<GlooLoopback> gloo_loopback(const model::JobModel& job) {
  Quotes quotes;
  bool warned = false;
  bool failed = false;
  bool mesh = false;
  each_line(job, [&](const LogLine& line) {
    const bool warns = warns_of_loopback(line.text);
    const bool fails = loopback_failed(line.text);
    const bool fell = mesh_failed(line.text);
    warned = warned || warns;
    failed = failed || fails;
    mesh = mesh || fell;
    if (warns || fails || fell) {
      quotes.add(line);
    }
  });
  failed = failed || (warned && mesh);
  if ((!warned && !failed) || output_goes_on(job)) {
    return std::nullopt;
  }
  std::string hosts = several_hosts(job);
  return hosts.empty() ? std::nullopt
                       : std::optional(GlooLoopback{.ranks = std::move(quotes.ranks),
                                                    .failed = failed,
                                                    .hosts = std::move(hosts),
                                                    .evidence = std::move(quotes.evidence)});
}

std::optional<GlooMesh> gloo_mesh_failed(const model::JobModel& job) {
  Quotes quotes;
  each_line(job, [&quotes](const LogLine& line) {
    if (mesh_failed(line.text)) {
      quotes.add(line);
    }
  });
  if (quotes.ranks.size() < 2 || output_goes_on(job)) {
    return std::nullopt;
  }
  const auto failed = tracebacks(job);
  const bool only_this = std::all_of(failed.begin(), failed.end(), [](const Traceback& one) {
    return mesh_failed(one.exception) || one.of_launcher || one.ignored;
  });
  return only_this ? std::optional(GlooMesh{.ranks = std::move(quotes.ranks),
                                            .evidence = std::move(quotes.evidence)})
                   : std::nullopt;
}

}  // namespace ddpdoctor::detectors
