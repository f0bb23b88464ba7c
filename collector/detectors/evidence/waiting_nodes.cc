// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/waiting_nodes.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kWaitingNodes = "rendezvous-incomplete";

/// The command-line options of one agent.
struct Agent {
  const model::Process* process = nullptr;
  std::optional<int> nodes;
  std::optional<int> node;       // number of its node, if given
  std::optional<int> processes;  // number per node
  std::string place;             // "127.0.0.1:29500"; empty = the default
  std::string id;
};

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 &&
                 value < model::kMaxWorldSize
             ? std::optional(value)
             : std::nullopt;
}

/// "--rdzv-id=7", "--rdzv_id 7" → {"rdzv_id": "7"}; the first occurrence counts, so options of the
/// script that follows do not.
std::map<std::string, std::string> options(const std::vector<std::string>& command) {
  std::map<std::string, std::string> out;
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (!command[i].starts_with("--")) {
      continue;
    }
    const std::size_t equals = command[i].find('=');
    std::string name = command[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    std::replace(name.begin(), name.end(), '-', '_');
    if (equals != std::string::npos) {
      out.emplace(std::move(name), command[i].substr(equals + 1));
    } else if (i + 1 < command.size() && !command[i + 1].starts_with("--")) {
      out.emplace(std::move(name), command[i + 1]);
    }
  }
  return out;
}

bool waits_for_nodes(const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  return alive(process) && main != nullptr &&
         std::any_of(main->frames.begin(), main->frames.end(), [](const model::Frame& frame) {
           return frame.function.ends_with("_rendezvous") &&  // also after its own part is complete
                  frame.file.find("torch/distributed/elastic/") != std::string::npos;
         });
}

Agent agent_of(const model::Process& process) {
  const auto told = options(process.command);
  const auto get = [&told](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (const auto found = told.find(name); found != told.end()) {
        return found->second;
      }
    }
    return std::string();
  };
  const std::string nodes = get({"nnodes", "num_machines"});
  Agent agent{.process = &process,
              .nodes = number(nodes.substr(0, nodes.find(':'))),  // "2:4": at least two
              .node = number(get({"node_rank", "machine_rank"})),
              .processes = number(get({"nproc_per_node"})),
              .place = get({"rdzv_endpoint"}),
              .id = get({"rdzv_id"})};
  if (const std::string port = get({"master_port", "main_process_port"});
      agent.place.empty() && !port.empty()) {
    const std::string address = get({"master_addr", "main_process_ip"});
    agent.place = (address.empty() ? "127.0.0.1" : address) + ":" + port;
  }
  return agent;
}

/// Ranks of the nodes that no visible agent represents.
model::RankSet absent_ranks(const std::vector<Agent>& agents) {
  std::set<int> here;
  for (const Agent& agent : agents) {
    if (!agent.node || !agent.processes || agent.processes != agents.front().processes) {
      return {};
    }
    here.insert(*agent.node);
  }
  model::RankSet ranks;
  const int each = *agents.front().processes;
  for (int node = 0; node < agents.front().nodes.value_or(0); ++node) {
    for (int i = 0; i < each && !here.contains(node) && ranks.size() < 4096; ++i) {
      ranks.insert(node * each + i);
    }
  }
  return ranks;
}

std::string list(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    out += (out.empty() ? "" : ", ") + (name.empty() ? "none" : name);
  }
  return out;
}

/// All nodes wait at one address, but not for each other.
std::optional<Finding> told_differently(const graph::Examination& examination,
                                        const std::vector<Agent>& agents, Confidence still) {
  std::set<std::string> ids;
  std::set<std::string> places;
  Finding finding;
  for (const Agent& agent : agents) {
    ids.insert(agent.id);
    places.insert(agent.place);
    finding.evidence.push_back(
        {.rank = std::nullopt,
         .text = fmt::format("process {} is waiting at {} for the rendezvous \"{}\"",
                             agent.process->pid,
                             agent.place.empty() ? "the default endpoint" : agent.place,
                             agent.id.empty() ? "none" : agent.id)});
  }
  if (ids.size() < 2 && places.size() < 2) {
    return std::nullopt;
  }
  const bool by_id = ids.size() > 1;
  finding.kind = kWaitingNodes;
  finding.confidence = unless_somebody_acts(examination, still);
  finding.summary =
      fmt::format("all {} nodes wait for each other: they have different {} ({})", agents.size(),
                  by_id ? "--rdzv-id" : "rendezvous endpoints", list(by_id ? ids : places));
  finding.fix = by_id ? "Pass the same --rdzv-id on every node."
                      : "Pass the same --rdzv-endpoint (or --master-addr and --master-port) on "
                        "every node.";
  return finding;
}

/// Every agent has waited so long that a node started at the same time would have arrived.
bool all_wait_for_long(const model::JobModel& job, const std::vector<Agent>& agents) {
  constexpr double kLong = 60;  // seconds; imports of torch on a loaded machine take half of it
  const model::Observation* now = model::latest(job);
  return now != nullptr && std::all_of(agents.begin(), agents.end(), [now](const Agent& agent) {
           return agent.process->start_time && now->time - *agent.process->start_time >= kLong;
         });
}

}  // namespace

Findings waiting_nodes(const graph::Examination& examination) {
  std::vector<Agent> agents;
  for (const model::Process* process : processes(examination.job)) {
    if (waits_for_nodes(*process)) {
      agents.push_back(agent_of(*process));
    }
  }
  if (agents.empty() || !agents.front().nodes ||
      std::any_of(agents.begin(), agents.end(),
                  [&](const Agent& agent) { return agent.nodes != agents.front().nodes; })) {
    return {};
  }
  const int nodes = *agents.front().nodes;
  const auto here = static_cast<int>(agents.size());
  if (here >= nodes) {
    auto finding = told_differently(examination, agents, Confidence::kLikely);
    return finding ? Findings{std::move(*finding)} : Findings{};
  }
  Finding finding;
  finding.kind = kWaitingNodes;
  // The others may still be starting on other machines.
  finding.confidence = all_wait_for_long(examination.job, agents)
                           ? unless_somebody_acts(examination, Confidence::kLikely)
                           : Confidence::kPossible;
  finding.culprits = absent_ranks(agents);
  const std::string& place = agents.front().place;
  finding.summary = fmt::format(
      "torchrun waits for {} more node{}: {} of {} reached the rendezvous{}", nodes - here,
      nodes - here == 1 ? "" : "s", here, nodes, place.empty() ? "" : " at " + place);
  for (const Agent& agent : agents) {
    finding.evidence.push_back(
        {.rank = std::nullopt,
         .text = fmt::format(
             "process {}{} was started with --nnodes={} and has started no rank yet",
             agent.process->pid, agent.node ? fmt::format(" (node {})", *agent.node) : "", nodes)});
  }
  finding.fix = fmt::format(
      "Start the command on the other node{}, too, with the same endpoint; or set --nnodes={}.",
      nodes - here == 1 ? "" : "s", here);
  return {std::move(finding)};
}

}  // namespace ddpdoctor::detectors
