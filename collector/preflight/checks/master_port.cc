// SPDX-License-Identifier: Apache-2.0
// The rendezvous port must be free on the machine of rank 0: otherwise the job fails with "Address
// already in use" or, worse, the ranks connect to another job's store and wait forever.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/preflight/addresses.h"
#include "collector/preflight/check.h"
#include "collector/sources/files/descriptors.h"
#include "collector/sources/network/sockets.h"
#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::preflight::master_port {
namespace {

constexpr int kPrivileged = 1024;

/// "pid 77 (python train.py)"; empty if no listener is visible.
std::string listener_of(int port) {
  sources::TcpTable table;
  table.read(::getpid());
  const auto& all = table.all();
  const auto found = std::find_if(all.begin(), all.end(), [port](const sources::TcpSocket& one) {
    return one.state == sources::TcpState::kListen && one.local_port == port;
  });
  if (found == all.end()) {
    return {};
  }
  sources::DescriptorTable descriptors({});
  const auto& holders = descriptors.holders_anywhere(fmt::format("socket:[{}]", found->inode));
  if (holders.empty()) {
    return "a process that ddpdoctor may not inspect";
  }
  const auto row = sources::read_process(holders.front().pid);
  constexpr std::size_t kWidth = 60;
  return fmt::format(
      "process {} ({})", holders.front().pid,
      row ? base::elide(fmt::format("{}", fmt::join(row->command, " ")), kWidth) : "gone");
}

/// Rank 0 runs here: this is node 0, or the address belongs to this machine.
bool meets_here(const Plan& plan) {
  if (plan.node) {
    return *plan.node == 0;
  }
  if (plan.nodes <= 1 || !plan.address) {
    return true;
  }
  const Resolved resolved = resolve(*plan.address);
  return std::any_of(resolved.addresses.begin(), resolved.addresses.end(),
                     [](const Address& address) { return address.ours; });
}

Remarks look(const Setting& setting) {
  const auto port = setting.plan.port;
  if (!port) {
    return {};
  }
  if (*port == 0) {
    return {{.level = Level::kOk, .what = "the launcher picks a free port", .fix = {}}};
  }
  if (!meets_here(setting.plan)) {
    return {};
  }
  const int error = bind_error(*port);
  if (error == 0) {
    return {{.level = Level::kOk, .what = fmt::format("port {} is free", *port), .fix = {}}};
  }
  if (error == EACCES && *port < kPrivileged) {
    return {{.level = Level::kBreaks,
             .what = fmt::format("port {} is for root only", *port),
             .fix = "choose a port of 1024 or more"}};
  }
  const std::string owner = error == EADDRINUSE ? listener_of(*port) : "";
  return {{.level = Level::kBreaks,
           .what = fmt::format("port {}: {}{}", *port, std::strerror(error),
                               owner.empty() ? "" : "; " + owner + " listens there"),
           .fix =
               "choose another port (--master-port, MASTER_PORT), or end the process that has it; "
               "ddpdoctor clean lists orphaned ranks"}};
}

}  // namespace

extern const Check check;
const Check check{.name = "master-port", .title = "Port of the rendezvous", .look = look};

}  // namespace ddpdoctor::preflight::master_port
