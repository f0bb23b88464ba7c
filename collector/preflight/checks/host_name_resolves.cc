// SPDX-License-Identifier: Apache-2.0
// Gloo resolves this machine's own name to choose an address; a name that does not resolve becomes
// the loopback address, which other machines cannot reach.
#include <algorithm>

#include <fmt/format.h>

#include "base/host_name.h"
#include "collector/preflight/addresses.h"
#include "collector/preflight/check.h"

namespace ddpdoctor::preflight::host_name_resolves {
namespace {

Remarks look(const Setting& setting) {
  if (setting.variable("GLOO_SOCKET_IFNAME")) {
    return {};  // the interface decides, not the host name
  }
  const std::string name = base::host_name();
  const Resolved resolved = resolve(name);
  const bool many = setting.plan.nodes > 1;
  constexpr std::string_view kFix =
      "export GLOO_SOCKET_IFNAME=eth0 (the interface between the nodes), or add the name with its "
      "address to /etc/hosts";
  if (resolved.addresses.empty()) {
    return {{.level = many ? Level::kBreaks : Level::kWarning,
             .what = fmt::format(
                 "this machine's name {} does not resolve: {}; gloo will use the loopback", name,
                 resolved.problem),
             .fix = std::string(kFix)}};
  }
  const bool ours = std::any_of(resolved.addresses.begin(), resolved.addresses.end(),
                                [](const Address& one) { return one.ours; });
  const bool loopback = std::all_of(resolved.addresses.begin(), resolved.addresses.end(),
                                    [](const Address& one) { return one.loopback; });
  const std::string what = fmt::format("{} is {}", name, resolved.addresses.front().text);
  if (!ours) {
    return {{.level = many ? Level::kBreaks : Level::kWarning,
             .what = what + ", not an address of this machine: gloo cannot listen there",
             .fix = std::string(kFix)}};
  }
  if (many && loopback) {
    return {{.level = Level::kBreaks,
             .what = what + ", which the other machines cannot reach",
             .fix = std::string(kFix)}};
  }
  return {{.level = Level::kOk, .what = what, .fix = {}}};
}

}  // namespace

extern const Check check;
const Check check{.name = "host-name", .title = "This machine's name", .look = look};

}  // namespace ddpdoctor::preflight::host_name_resolves
