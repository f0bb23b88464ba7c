// SPDX-License-Identifier: Apache-2.0
// torchrun's c10d rendezvous is served by the node that finds the endpoint among the addresses of
// its own host name. If every node connects as a client, no node recognized itself.
#include "collector/detectors/evidence/store_address.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/address_notes.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kStoreFailed = "RendezvousConnectionError";

/// What one log says of torchrun's own rendezvous.
struct AgentLog {
  int nodes = 0;
  bool failed = false;
};

bool is_of_client(std::string_view line) {
  return line.find("[c10d]") != line.npos || line.find("lient socket") != line.npos ||
         line.find("network address") != line.npos || line.find("rdzv") != line.npos;
}

}  // namespace

StoreAddress unreachable_store(const model::JobModel& job) {
  constexpr std::size_t kLongestAddressLine = 4096;
  StoreAddress out;
  std::set<std::string> addresses;
  int nodes = 0;
  int failed = 0;
  bool all = !job.logs.empty();
  for (const model::Log& log : job.logs) {
    AgentLog agent;
    for (std::string_view line : base::split(log.text, '\n')) {
      line = line.substr(0, kLongestAddressLine);
      agent.failed = agent.failed || line.find(kStoreFailed) != line.npos;
      agent.nodes = std::max(agent.nodes, number_of_nodes(line));
      if (is_of_client(line)) {
        addresses.insert(store_address(line));
        out.brackets = out.brackets || line.find(" addresses of ([") != line.npos ||
                       line.find(" address of ([") != line.npos;
      }
    }
    nodes = std::max(nodes, agent.nodes);
    failed += agent.failed ? 1 : 0;
    all = all && agent.failed;
  }
  addresses.erase("");
  // The endpoint without a port, beside the address that the client tried.
  std::erase_if(addresses, [&addresses](const std::string& one) {
    return std::any_of(addresses.begin(), addresses.end(), [&one](const std::string& other) {
      return other.size() > one.size() && other.starts_with(one + ":");
    });
  });
  out.text = addresses.size() == 1 ? base::printable(*addresses.begin()) : std::string();
  out.nodes = all && nodes > 0 && failed >= nodes ? nodes : 0;
  return out;
}

void tell_store(const StoreAddress& store, ToldFinding& told) {
  const std::string where = store.text.empty() ? std::string() : " at " + store.text;
  if (store.nodes > 1) {
    told.finding.summary =
        fmt::format("no process serves the rendezvous{}: all {} nodes failed to connect as clients",
                    where, store.nodes);
    told.finding.fix =
        "Pass an endpoint that the serving node finds for its own host name (`getent hosts "
        "$(hostname)`). Or add `--rdzv-conf is_host=1` on that node only. Then check its firewall.";
    return;
  }
  told.did += where;
}

}  // namespace ddpdoctor::detectors
