// SPDX-License-Identifier: Apache-2.0
// GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME and TP_SOCKET_IFNAME must name existing interfaces that
// are up; such settings are often copied from another cluster.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/preflight/check.h"

namespace ddpdoctor::preflight::interfaces {
namespace {

bool is_up(const Setting& setting, const std::string& name) {
  const std::string state = std::string(
      base::trim(setting.file(fmt::format("/sys/class/net/{}/operstate", name)).value_or("")));
  return state != "down" && state != "lowerlayerdown" && state != "notpresent";
}

/// NCCL: a list of prefixes; a leading "=" means exact names, "^" excludes them. Gloo and
/// TensorPipe: exact names.
std::vector<std::string> chosen(const std::vector<std::string>& there, std::string_view text,
                                bool nccl) {
  const bool excluded = nccl && text.starts_with('^');
  text.remove_prefix(excluded ? 1 : 0);
  const bool whole = !nccl || text.starts_with('=');
  text.remove_prefix(nccl && text.starts_with('=') ? 1 : 0);
  std::vector<std::string> out;
  for (const std::string& name : there) {
    bool named = false;
    for (const std::string_view part : base::split(text, ',')) {
      const std::string_view wanted = part.substr(0, part.find(':'));
      named = named || (!wanted.empty() && (whole ? name == wanted : name.starts_with(wanted)));
    }
    if (named != excluded) {
      out.push_back(name);
    }
  }
  return out;
}

Remark judge(const Setting& setting, const std::string& variable, const std::string& value) {
  const auto there = setting.names("/sys/class/net");
  const auto names = chosen(there, value, variable.starts_with("NCCL"));
  const std::string said = fmt::format("{}={}", variable, value);
  const std::string list = fmt::format("{}", fmt::join(there, ", "));
  if (names.empty()) {
    return {
        .level = Level::kBreaks,
        .what = fmt::format("{}: this machine has no such interface", said),
        .fix = fmt::format("interfaces here: {}; unset {} or name one of them", list, variable)};
  }
  const auto up = std::find_if(names.begin(), names.end(), [&setting](const std::string& name) {
    return is_up(setting, name);
  });
  if (up == names.end()) {
    return {.level = Level::kBreaks,
            .what = fmt::format("{}: {} is down", said, fmt::join(names, ", ")),
            .fix = fmt::format("ip link set {} up, or name another of: {}", names.front(), list)};
  }
  if (*up == "lo" && names.size() == 1 && setting.plan.nodes > 1) {
    return {.level = Level::kBreaks,
            .what = said + ": the loopback does not reach other machines",
            .fix = fmt::format("name the interface between the nodes; here: {}", list)};
  }
  return {
      .level = Level::kOk, .what = fmt::format("{}: {}", said, fmt::join(names, ", ")), .fix = {}};
}

Remarks look(const Setting& setting) {
  constexpr std::array<const char*, 3> kVariables{"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME",
                                                  "TP_SOCKET_IFNAME"};
  Remarks remarks;
  for (const char* variable : kVariables) {
    if (const auto value = setting.variable(variable)) {
      remarks.push_back(judge(setting, variable, *value));
    }
  }
  return remarks;
}

}  // namespace

extern const Check check;
const Check check{
    .name = "interfaces", .title = "Network interfaces that variables name", .look = look};

}  // namespace ddpdoctor::preflight::interfaces
