// SPDX-License-Identifier: Apache-2.0
// Variables of NCCL and torch that make a job fail or hang, or hide its hang. A table of rules:
// variable, condition, effect.
#include <array>

#include <fmt/format.h>

#include "collector/preflight/check.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::preflight::nccl_environment {
namespace {

struct Rule {
  const char* variable;
  bool (*applies)(const Setting& setting, const std::string& value);
  Level level;
  const char* what;
  const char* fix;
};

bool on(const Setting& /*setting*/, const std::string& value) {
  return value == "1" || value == "true" || value == "TRUE" || value == "on";
}

bool off(const Setting& /*setting*/, const std::string& value) {
  return value == "0" || value == "false" || value == "off";
}

bool always(const Setting& /*setting*/, const std::string& /*value*/) {
  return true;
}

bool on_many_nodes(const Setting& setting, const std::string& value) {
  return on(setting, value) && setting.plan.nodes > 1;
}

bool no_number(const Setting& /*setting*/, const std::string& value) {
  return !sources::number<long>(value);
}

bool unknown_level(const Setting& /*setting*/, const std::string& value) {
  for (const char* known : {"VERSION", "WARN", "INFO", "ABORT", "TRACE", "NONE", "version", "warn",
                            "info", "abort", "trace", "none"}) {
    if (value == known) {
      return false;
    }
  }
  return true;
}

bool unknown_detail(const Setting& /*setting*/, const std::string& value) {
  return value != "OFF" && value != "INFO" && value != "DETAIL";
}

bool is_detail(const Setting& /*setting*/, const std::string& value) {
  return value == "DETAIL";
}

constexpr std::array<Rule, 13> kRules{{
    {"NCCL_ASYNC_ERROR_HANDLING", always, Level::kWarning,
     "was renamed; new versions of torch warn and may ignore it",
     "use TORCH_NCCL_ASYNC_ERROR_HANDLING"},
    {"NCCL_BLOCKING_WAIT", always, Level::kWarning,
     "was renamed; new versions of torch warn and may ignore it", "use TORCH_NCCL_BLOCKING_WAIT"},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", off, Level::kWarning,
     "the watchdog will not end a job that hangs", "unset it"},
    {"TORCH_NCCL_BLOCKING_WAIT", on, Level::kWarning,
     "every collective blocks the CPU; slow, and the watchdog's timeout is not used", "unset it"},
    {"TORCH_NCCL_TRACE_BUFFER_SIZE", off, Level::kWarning,
     "the flight recorder is off: attach sees no history of collectives", "unset it, or set 2000"},
    {"TORCH_FR_BUFFER_SIZE", off, Level::kWarning,
     "the flight recorder is off: attach sees no history of collectives", "unset it, or set 2000"},
    {"NCCL_SHM_DISABLE", on, Level::kWarning,
     "ranks of one machine talk over the network instead of shared memory", "unset it"},
    {"NCCL_P2P_DISABLE", on, Level::kWarning,
     "GPUs of one machine do not talk to each other directly: slow, meant for debugging",
     "unset it when the fault is found"},
    {"NCCL_IB_DISABLE", on_many_nodes, Level::kWarning,
     "machines talk over TCP instead of InfiniBand", "unset it where there is InfiniBand"},
    {"NCCL_COMM_ID", always, Level::kWarning,
     "is one fixed meeting point for every communicator: a second group collides with the first",
     "unset it; torch makes its own"},
    {"NCCL_DEBUG", unknown_level, Level::kWarning,
     "is not a level of NCCL: nothing will be printed", "WARN or INFO"},
    {"TORCH_DISTRIBUTED_DEBUG", unknown_detail, Level::kBreaks,
     "is refused by torch: init_process_group raises", "OFF, INFO or DETAIL"},
    {"TORCH_DISTRIBUTED_DEBUG", is_detail, Level::kWarning,
     "every collective is checked against all ranks: much slower", "INFO, or ddpdoctor run"},
}};

constexpr std::array<const char*, 3> kNumbers{"NCCL_IB_TIMEOUT", "NCCL_BUFFSIZE",
                                              "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"};

Remarks look(const Setting& setting) {
  Remarks remarks;
  for (const Rule& rule : kRules) {
    const auto value = setting.variable(rule.variable);
    if (value && rule.applies(setting, *value)) {
      remarks.push_back({.level = rule.level,
                         .what = fmt::format("{}={}: {}", rule.variable, *value, rule.what),
                         .fix = rule.fix});
    }
  }
  for (const char* variable : kNumbers) {
    const auto value = setting.variable(variable);
    if (value && no_number(setting, *value)) {
      remarks.push_back({.level = Level::kWarning,
                         .what = fmt::format("{}={}: not a number", variable, *value),
                         .fix = "give a number or unset it"});
    }
  }
  if (remarks.empty()) {
    remarks.push_back({.level = Level::kOk, .what = "no variable causes a problem", .fix = {}});
  }
  return remarks;
}

}  // namespace

extern const Check check;
const Check check{
    .name = "nccl-environment", .title = "NCCL's and torch's variables", .look = look};

}  // namespace ddpdoctor::preflight::nccl_environment
