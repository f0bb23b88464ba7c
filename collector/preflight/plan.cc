// SPDX-License-Identifier: Apache-2.0
#include "collector/preflight/plan.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::preflight {
namespace {

constexpr int kMostRanks = 65536;
constexpr int kHighestPort = 65535;

/// torchrun and argparse accept "--a_b" and "--a-b" as the same option.
std::string plain(std::string_view option) {
  std::string out(option);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

/// One option with its value in any notation; the value is empty for a flag.
struct Option {
  std::string name;
  std::string value;
};

/// The options among the words [from, to): a word after an option counts as its value.
std::vector<Option> options_of(const std::vector<std::string>& words, std::size_t from,
                               std::size_t to) {
  std::vector<Option> found;
  for (std::size_t i = from; i < to; ++i) {
    if (!words[i].starts_with('-')) {
      continue;
    }
    const std::size_t equals = words[i].find('=');
    Option option{.name = plain(words[i].substr(0, equals)), .value = {}};
    if (equals != std::string::npos) {
      option.value = words[i].substr(equals + 1);
    } else if (i + 1 < to && !words[i + 1].starts_with('-')) {
      option.value = words[i + 1];
    }
    found.push_back(std::move(option));
  }
  return found;
}

std::optional<int> bounded(std::string_view text, int least, int most) {
  const auto value = sources::number<int>(text);
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

Launcher launcher_of(const std::vector<std::string>& words, std::size_t& behind) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = base::file_name(words[i]);
    if (name == "torchrun" || words[i] == "torch.distributed.run" ||
        words[i] == "torch.distributed.launch") {
      behind = i + 1;
      return Launcher::kTorchrun;
    }
    if ((name == "accelerate" || words[i] == "accelerate.commands.launch")) {
      behind = i + 1;
      return Launcher::kAccelerate;
    }
    if (name.ends_with(".py")) {
      break;
    }
  }
  behind = 0;
  return Launcher::kNone;
}

std::size_t script_at(const std::vector<std::string>& words, std::size_t from) {
  const auto found =
      std::find_if(words.begin() + static_cast<std::ptrdiff_t>(std::min(from, words.size())),
                   words.end(), [](const std::string& word) { return word.ends_with(".py"); });
  return static_cast<std::size_t>(found - words.begin());
}

/// "host:port", "[::1]:port", "host".
void take_endpoint(const std::string& text, Plan& plan) {
  const std::size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && text.find(']', colon) == std::string::npos;
  std::string host = has_port ? text.substr(0, colon) : text;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  plan.address = host;
  if (has_port) {
    plan.port = bounded(text.substr(colon + 1), 0, kHighestPort);
  }
}

void take_torchrun(const std::vector<Option>& options, const Environment& environment, Plan& plan) {
  bool standalone = false;
  std::string endpoint;
  std::optional<std::string> address;
  std::optional<int> port;
  // Every option can also come from a variable PET_NAME (torch.distributed.argparse_util).
  std::vector<Option> all;
  for (const char* name : {"nnodes", "nproc-per-node", "node-rank", "master-addr", "master-port",
                           "rdzv-endpoint", "standalone"}) {
    std::string variable = "PET_" + std::string(name);
    std::transform(variable.begin(), variable.end(), variable.begin(), [](char c) {
      return c == '-' ? '_' : (c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
    });
    if (const auto found = environment.find(variable); found != environment.end()) {
      all.push_back({.name = "--" + std::string(name), .value = found->second});
    }
  }
  all.insert(all.end(), options.begin(), options.end());
  for (const Option& option : all) {
    if (option.name == "--nproc-per-node" && !plan.ranks_here) {
      plan.ranks_here = bounded(option.value, 1, kMostRanks);
      plan.ranks_by_gpu = option.value == "gpu" || option.value == "auto";
    } else if (option.name == "--nnodes") {
      const std::string most = option.value.substr(option.value.find(':') + 1);
      plan.nodes = bounded(most, 1, kMostRanks).value_or(1);
    } else if (option.name == "--node-rank") {
      plan.node = bounded(option.value, 0, kMostRanks);
    } else if (option.name == "--master-addr") {
      address = option.value;
    } else if (option.name == "--master-port") {
      port = bounded(option.value, 0, kHighestPort);
    } else if (option.name == "--rdzv-endpoint") {
      endpoint = option.value;
    } else if (option.name == "--standalone") {
      standalone = true;
    }
  }
  if (!plan.ranks_here && !plan.ranks_by_gpu) {
    plan.ranks_here = 1;
  }
  if (!endpoint.empty() && !standalone) {
    take_endpoint(endpoint, plan);
  } else if (standalone || (!port && plan.nodes == 1)) {
    plan.port = 0;  // torch 2.13's run(): uses its own rendezvous on a free port
    plan.address = "localhost";
  } else {
    plan.address = address.value_or("127.0.0.1");
    plan.port = port.value_or(29500);
  }
}

void take_accelerate(const std::vector<Option>& options, Plan& plan) {
  for (const Option& option : options) {
    if (option.name == "--num-processes" && !plan.ranks_here) {
      plan.ranks_here = bounded(option.value, 1, kMostRanks);
    } else if (option.name == "--num-machines") {
      plan.nodes = bounded(option.value, 1, kMostRanks).value_or(1);
    } else if (option.name == "--machine-rank") {
      plan.node = bounded(option.value, 0, kMostRanks);
    } else if (option.name == "--main-process-ip") {
      plan.address = option.value;
    } else if (option.name == "--main-process-port") {
      plan.port = bounded(option.value, 0, kHighestPort);
    }
  }
  if (plan.ranks_here && plan.nodes > 1) {
    plan.ranks_here = std::max(1, *plan.ranks_here / plan.nodes);  // accelerate counts all machines
  }
}

/// Option names with which scripts set the number of DataLoader workers.
void take_workers(const std::vector<Option>& options, Plan& plan) {
  constexpr std::array<std::string_view, 6> kNames{
      "--workers",        "--num-workers",      "--dataloader-num-workers",
      "--loader-workers", "--num-data-workers", "-j"};
  constexpr int kMostWorkers = 4096;
  for (const Option& option : options) {
    if (!plan.workers && std::find(kNames.begin(), kNames.end(), option.name) != kNames.end()) {
      plan.workers = bounded(option.value, 0, kMostWorkers);
    }
  }
}

std::optional<int> variable(const Environment& environment, const char* name, int most) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::nullopt : bounded(found->second, 0, most);
}

}  // namespace

Plan plan_of(const std::vector<std::string>& command, const Environment& environment,
             const Plan& given) {
  Plan plan = given;
  plan.command = command;
  std::size_t behind = 0;
  plan.launcher = launcher_of(command, behind);
  const std::size_t script = script_at(command, behind);
  if (script < command.size()) {
    plan.script = command[script];
    take_workers(options_of(command, script + 1, command.size()), plan);
  }
  const auto options = options_of(command, behind, std::min(script, command.size()));
  if (plan.launcher == Launcher::kTorchrun) {
    take_torchrun(options, environment, plan);
    return plan;
  }
  if (plan.launcher == Launcher::kAccelerate) {
    take_accelerate(options, plan);
  }
  if (!plan.address) {
    const auto address = environment.find("MASTER_ADDR");
    plan.address = address == environment.end() ? std::nullopt : std::optional(address->second);
  }
  if (!plan.port) {
    plan.port = variable(environment, "MASTER_PORT", kHighestPort);
  }
  if (!plan.ranks_here) {
    plan.ranks_here = variable(environment, "LOCAL_WORLD_SIZE", kMostRanks);
  }
  return plan;
}

}  // namespace ddpdoctor::preflight
