// SPDX-License-Identifier: Apache-2.0
// The rendezvous address of the ranks: it must resolve, belong to the machine of rank 0, and be
// reachable from the other machines.
#include <algorithm>

#include <fmt/format.h>

#include "collector/preflight/addresses.h"
#include "collector/preflight/check.h"

namespace ddpdoctor::preflight::master_address {
namespace {

constexpr std::chrono::milliseconds kPatience{1500};

Remarks judge_ours(const Plan& plan, const Address& address) {
  if (address.loopback && plan.nodes > 1) {
    return {{.level = Level::kBreaks,
             .what = fmt::format(
                 "{} is {}, which means every machine to itself; the job has {} machines",
                 *plan.address, address.text, plan.nodes),
             .fix = "use an address of node 0 that the others can reach"}};
  }
  return {{.level = Level::kOk,
           .what = fmt::format("{} is {}, this machine", *plan.address, address.text),
           .fix = {}}};
}

Remarks judge_other(const Plan& plan, const Address& address) {
  const std::string name = *plan.address == address.text
                               ? address.text
                               : fmt::format("{} ({})", *plan.address, address.text);
  if (plan.node == 0 || (plan.nodes <= 1 && !plan.node)) {
    return {{.level = plan.node == 0 || plan.launcher == Launcher::kTorchrun ? Level::kBreaks
                                                                             : Level::kWarning,
             .what = fmt::format(
                 "{} is not an address of this machine, but rank 0 must listen here", name),
             .fix = "MASTER_ADDR must name the machine of rank 0; on one machine: 127.0.0.1"}};
  }
  if (plan.port.value_or(0) == 0) {
    return {{.level = Level::kOk, .what = name, .fix = {}}};
  }
  switch (reach(address, *plan.port, kPatience)) {
    case Reach::kAnswers:
      return {{.level = Level::kOk,
               .what = fmt::format("{} port {} answers", name, *plan.port),
               .fix = {}}};
    case Reach::kRefused:
      return {{.level = Level::kOk,
               .what = fmt::format("{} is reachable; no process listens on port {} yet", name,
                                   *plan.port),
               .fix = {}}};
    case Reach::kSilent:
      return {
          {.level = Level::kBreaks,
           .what = fmt::format("{} port {} does not answer: the machine is down or a "
                               "firewall drops it",
                               name, *plan.port),
           .fix = "open the port between the nodes, or use the address of the right interface"}};
    case Reach::kUnreachable:
      return {{.level = Level::kBreaks,
               .what = fmt::format("no route to {}", name),
               .fix = "use an address of node 0 in a network that this machine has"}};
  }
  return {};
}

Remarks look(const Setting& setting) {
  if (!setting.plan.address) {
    return {};
  }
  const Resolved resolved = resolve(*setting.plan.address);
  if (resolved.addresses.empty()) {
    return {{.level = Level::kBreaks,
             .what = fmt::format("MASTER_ADDR {} does not resolve: {}", *setting.plan.address,
                                 resolved.problem),
             .fix = "correct the name, use an IP address, or add it to /etc/hosts"}};
  }
  const auto ours = std::find_if(resolved.addresses.begin(), resolved.addresses.end(),
                                 [](const Address& one) { return one.ours; });
  return ours != resolved.addresses.end() ? judge_ours(setting.plan, *ours)
                                          : judge_other(setting.plan, resolved.addresses.front());
}

}  // namespace

extern const Check check;
const Check check{.name = "master-address", .title = "Address of the rendezvous", .look = look};

}  // namespace ddpdoctor::preflight::master_address
