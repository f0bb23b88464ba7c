// SPDX-License-Identifier: Apache-2.0
// The rendezvous address: its listener, its clients, and unanswered connections. Resolves no names,
// because the name server may be what hangs.
#include <algorithm>
#include <array>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>

#include <fmt/format.h>
#include <sys/socket.h>

#include "base/host_name.h"
#include "base/text.h"
#include "collector/sources/facts/fact_sources.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

namespace {

struct Rendezvous {
  std::string address;
  int port = 0;

  bool operator<(const Rendezvous& other) const {
    return std::tie(address, port) < std::tie(other.address, other.port);
  }
};

std::optional<std::string> network_variable(const Scene& scene, const JobProcess& process,
                                            const char* name) {
  const stacks::ProcessStacks* stacks = scene.context.stacks_of(process.row.pid);
  if (stacks != nullptr && stacks->python) {
    const auto found = stacks->python->environment.find(name);
    if (found != stacks->python->environment.end()) {
      return found->second;
    }
  }
  const auto found = process.row.environment.find(name);
  return found == process.row.environment.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Rendezvous> rendezvous_of(const Scene& scene, const JobProcess& process) {
  const auto address = network_variable(scene, process, "MASTER_ADDR");
  const auto port =
      number<int>(base::trim(network_variable(scene, process, "MASTER_PORT").value_or("")));
  constexpr int kLargestPort = 65535;
  if (!address || !port || *port <= 0 || *port > kLargestPort) {
    return std::nullopt;
  }
  return Rendezvous{.address = *address, .port = *port};
}

std::set<std::string> own_addresses() {
  std::set<std::string> found{"localhost", "127.0.0.1", "::1", "0.0.0.0"};
  if (const std::string name = base::host_name(); !name.empty()) {
    found.insert(name);
  }
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    return found;
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(first, &::freeifaddrs);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    const int family = one->ifa_addr == nullptr ? AF_UNSPEC : one->ifa_addr->sa_family;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::array<char, NI_MAXHOST> text{};
    if ((family == AF_INET || family == AF_INET6) &&
        ::getnameinfo(one->ifa_addr, length, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      found.insert(text.data());
    }
  }
  return found;
}

/// Sockets of the job's processes: inode → process. Forked processes share sockets; the oldest one
/// is kept.
std::map<std::uint64_t, const JobProcess*> job_sockets(const Scene& scene) {
  std::map<std::uint64_t, const JobProcess*> owners;
  for (const JobProcess& process : scene.context.job().processes) {
    for (const Descriptor& one : scene.context.descriptors().of(process.row.pid)) {
      if (one.kind == DescriptorKind::kSocket) {
        owners.emplace(one.inode, &process);
      }
    }
  }
  return owners;
}

void add_listener(const Scene& scene, const Rendezvous& at, const std::set<std::string>& own,
                  const std::map<std::uint64_t, const JobProcess*>& owners, const TcpTable& table,
                  Facts& facts) {
  RawFact fact{.rank = {}, .pid = {}, .kind = "listen", .fields = {}};
  const bool local = own.contains(at.address) || at.address.starts_with("127.");
  fact.fields["address"] = at.address;
  fact.fields["port"] = std::int64_t{at.port};
  fact.fields["purpose"] = std::string("master");
  fact.fields["local"] = local;
  std::int64_t connections = 0;
  std::int64_t attempts = 0;
  for (const TcpSocket& socket : table.all()) {
    const bool ours = socket.remote_port == at.port && owners.contains(socket.inode);
    connections += ours && socket.state == TcpState::kEstablished ? 1 : 0;
    attempts += ours && socket.state == TcpState::kSynSent ? 1 : 0;
  }
  fact.fields["connections"] = connections;
  fact.fields["attempts"] = attempts;
  const auto listens =
      std::find_if(table.all().begin(), table.all().end(), [&at](const TcpSocket& socket) {
        return socket.state == TcpState::kListen && socket.local_port == at.port;
      });
  if (local) {
    fact.fields["listening"] = listens != table.all().end();
  }
  if (local && listens != table.all().end()) {
    const auto owner = owners.find(listens->inode);
    pid_t pid = owner == owners.end() ? 0 : owner->second->row.pid;
    if (pid == 0) {
      const auto& strangers =
          scene.context.descriptors().holders_anywhere(fmt::format("socket:[{}]", listens->inode));
      pid = strangers.empty() ? 0 : strangers.front().pid;
    }
    fact.fields["listener_in_job"] = owner != owners.end();
    if (pid != 0) {
      fact.fields["listener_pid"] = std::int64_t{pid};
      fact.fields["listener_command"] = short_command(pid);
    }
  }
  facts.push_back(std::move(fact));
}

void add_attempts(const TcpTable& table, const std::map<std::uint64_t, const JobProcess*>& owners,
                  const std::set<Rendezvous>& known, Facts& facts) {
  for (const TcpSocket& socket : table.all()) {
    const auto owner = owners.find(socket.inode);
    if (socket.state != TcpState::kSynSent || owner == owners.end()) {
      continue;
    }
    RawFact fact = fact_about(*owner->second, "connect");
    fact.fields["address"] = socket.remote_address;
    fact.fields["port"] = std::int64_t{socket.remote_port};
    fact.fields["local_address"] = socket.local_address;
    fact.fields["rendezvous"] =
        std::any_of(known.begin(), known.end(),
                    [&socket](const Rendezvous& at) { return at.port == socket.remote_port; });
    facts.push_back(std::move(fact));
  }
}

}  // namespace

void add_network_facts(const Scene& scene, Facts& facts) {
  std::set<Rendezvous> known;
  pid_t some = 0;
  for (const JobProcess& process : scene.context.job().processes) {
    const bool may_say =
        process.role == JobRole::kRank || process.role == JobRole::kDataLoaderWorker;
    if (const auto at = may_say ? rendezvous_of(scene, process) : std::nullopt) {
      known.insert(*at);
    }
    if (process.row.state != 'Z') {
      some = process.row.pid;
      scene.context.tcp(some);
    }
  }
  if (some == 0) {
    return;
  }
  const TcpTable& table = scene.context.tcp(some);
  const auto owners = job_sockets(scene);
  const auto own = own_addresses();
  for (const Rendezvous& at : known) {
    add_listener(scene, at, own, owners, table, facts);
  }
  add_attempts(table, owners, known, facts);
}

}  // namespace ddpdoctor::sources
