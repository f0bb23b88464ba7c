// SPDX-License-Identifier: Apache-2.0
// Every word sent to a node consists of characters that no shell interprets: ssh passes it to the
// remote login shell, --launcher to the local /bin/sh.
#include "collector/nodes/launchers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "collector/nodes/child.h"
#include "collector/nodes/host_list.h"

namespace ddpdoctor::nodes {
namespace {

constexpr std::chrono::seconds kPatience{15};  // for the servers of Slurm, Kubernetes and Ray
constexpr std::string_view kNearestCluster = "auto";  // Ray's word for the cluster of this machine

using Words = std::vector<std::string>;

bool needs_no_quotes(std::string_view word) {
  static constexpr std::string_view kSigns = "._:@%+=,/-";
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || kSigns.find(letter) != std::string_view::npos;
  });
}

std::string quoted(const std::string& word) {
  if (needs_no_quotes(word)) {
    return word;
  }
  std::string out = "'";
  for (const char letter : word) {
    out += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return out + "'";
}

std::string as_line(const Words& words) {
  std::string line;
  for (const std::string& word : words) {
    line += (line.empty() ? "" : " ") + quoted(word);
  }
  return line;
}

std::string own_path() {
  std::array<char, PATH_MAX> path{};
  return ::realpath("/proc/self/exe", path.data()) == nullptr ? "ddpdoctor" : path.data();
}

Words joined(Words first, const Words& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

base::Result<Finished> asked(const Words& command, const std::string& what) {
  auto answer = run_program(command, kPatience);
  if (!answer) {
    return base::failure(fmt::format("{}: {}", what, answer.error().what), answer.error().hint);
  }
  if (answer->status != 0) {
    const std::string line = last_line(answer->errors);
    return base::failure(fmt::format("{}: {} ended with status {}{}{}", what, command.front(),
                                     answer->status, line.empty() ? "" : ": ", line));
  }
  return answer;
}

base::Result<Words> slurm_nodes(const std::string& job) {
  const std::string what = "--slurm " + job;
  const Finished queue = TRY(asked({"squeue", "-h", "-j", job, "-o", "%T|%N"}, what));
  std::string list;
  std::string state = "unknown to squeue";
  std::size_t running = 0;
  for (const std::string_view line : base::split(queue.output, '\n')) {
    const std::size_t bar = line.find('|');
    if (bar == std::string_view::npos) {
      continue;
    }
    state = std::string(line.substr(0, bar));
    if ((state == "RUNNING" || state == "COMPLETING") &&
        !base::trim(line.substr(bar + 1)).empty()) {
      list = std::string(base::trim(line.substr(bar + 1)));
      ++running;
    }
  }
  if (running == 0) {
    return base::failure(
        fmt::format("{}: the job runs on no node: it is {}", what, base::printable(state)),
        "`squeue --me` lists your jobs");
  }
  if (running > 1) {
    return base::failure(fmt::format("{}: {} jobs of this array run", what, running),
                         fmt::format("name one of them: --slurm {}_1", job));
  }
  const Finished names = TRY(asked({"scontrol", "show", "hostnames", list}, what));
  std::string hosts = names.output;
  std::replace(hosts.begin(), hosts.end(), '\n', ',');
  return expand_hosts(hosts);
}

/// Digits; for arrays and heterogeneous jobs, "12_3" or "12+1".
bool is_slurm_job(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9' &&
         text.find_first_not_of("0123456789_+") == std::string_view::npos;
}

base::Result<Plan> plan_slurm(const Target& target, const Words& words) {
  if (!is_slurm_job(target.slurm)) {
    return base::failure(fmt::format("--slurm {}: not the id of a job", target.slurm),
                         "`squeue --me` lists your jobs");
  }
  Plan out;
  for (const std::string& node : TRY(slurm_nodes(target.slurm))) {
    out.nodes.push_back(
        {.node = node,
         .command = joined({"srun", "--jobid=" + target.slurm, "--overlap", "--nodes=1",
                            "--ntasks=1", "--nodelist=" + node, "--quiet"},
                           words)});
  }
  return out;
}

Words kubectl(const Target& target, Words rest) {
  Words out{"kubectl"};
  if (!target.name_space.empty()) {
    out.insert(out.end(), {"--namespace", target.name_space});
  }
  return joined(std::move(out), rest);
}

base::Result<Plan> plan_kubernetes(const Target& target, const Words& words) {
  const std::string what = "--kubernetes " + target.kubernetes;
  const Finished pods = TRY(asked(
      kubectl(target, {"get", "pods", "--selector", target.kubernetes, "--output",
                       "jsonpath={range .items[*]}{.metadata.name} {.status.phase}{\"\\n\"}{end}"}),
      what));
  Plan out;
  for (const std::string_view line : base::split(pods.output, '\n')) {
    const std::size_t blank = line.find(' ');
    const std::string pod(line.substr(0, blank));
    if (blank == std::string_view::npos || !is_host_name(pod)) {
      continue;
    }
    if (const std::string_view phase = base::trim(line.substr(blank)); phase != "Running") {
      out.unreachable.push_back(
          fmt::format("{}: the phase of this pod is {}", pod, base::printable(phase)));
      continue;
    }
    Words command = kubectl(target, {"exec", "--stdin", pod});
    if (!target.container.empty()) {
      command.insert(command.end(), {"--container", target.container});
    }
    command.emplace_back("--");
    out.nodes.push_back({.node = pod, .command = joined(std::move(command), words)});
  }
  if (out.nodes.empty()) {
    return base::failure(fmt::format("{}: no pod that runs has these labels", what),
                         "`kubectl get pods --show-labels` lists them; --namespace NAME chooses "
                         "where");
  }
  return out;
}

std::string filled(std::string_view pattern, std::string_view host, std::string_view command) {
  std::string out;
  while (!pattern.empty()) {
    if (pattern.starts_with("{host}")) {
      out += host;
      pattern.remove_prefix(6);
    } else if (pattern.starts_with("{command}")) {
      out += command;
      pattern.remove_prefix(9);
    } else {
      out += pattern.front();
      pattern.remove_prefix(1);
    }
  }
  return out;
}

/// The addresses of the nodes of a Ray cluster that are alive, from the JSON list that `ray`
/// prints.
base::Result<Words> ray_nodes(const std::string& address) {
  const std::string what = "--ray " + address;
  Words command{"ray", "list", "nodes", "--format", "json", "--limit", "10000"};
  if (address != kNearestCluster) {
    command.insert(command.end(), {"--address", address});
  }
  const Finished listed = TRY(asked(command, what));
  // A warning may precede the list.
  const std::size_t start = std::min(listed.output.find('['), listed.output.size());
  const auto list = nlohmann::json::parse(listed.output.substr(start), nullptr, false);
  Words out;
  for (const auto& node : list.is_array() ? list : nlohmann::json::array()) {
    const auto text = [&node](const char* name) {
      const auto field = node.is_object() ? node.find(name) : node.end();
      return node.is_object() && field != node.end() && field->is_string()
                 ? field->get<std::string>()
                 : std::string();
    };
    if (text("state") == "ALIVE" && is_host_name(text("node_ip"))) {
      out.push_back(text("node_ip"));
    }
  }
  if (out.empty()) {
    return base::failure(fmt::format("{}: the cluster lists no node that is alive", what),
                         "`ray list nodes` must work here; it needs ray[default]");
  }
  return out;
}

base::Result<Plan> plan_hosts(const Target& target, const Words& words) {
  const std::string line = as_line(words);
  if (!target.launcher.empty() && (target.launcher.find("{host}") == std::string::npos ||
                                   target.launcher.find("{command}") == std::string::npos)) {
    return base::failure(
        fmt::format("--launcher {}: it lacks {{host}} or {{command}}", target.launcher),
        "for example --launcher 'ssh -J gate {host} {command}'");
  }
  Plan out;
  const Words hosts =
      target.ray.empty() ? TRY(expand_hosts(target.hosts)) : TRY(ray_nodes(target.ray));
  for (const std::string& host : hosts) {
    Words command =
        target.launcher.empty()
            ? Words{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-T", host, line}
            : Words{"/bin/sh", "-c", filled(target.launcher, host, line)};
    out.nodes.push_back({.node = host, .command = std::move(command)});
  }
  return out;
}

}  // namespace

std::string as_word(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    const bool plain = letter != '%' && needs_no_quotes({&letter, 1});
    out +=
        plain ? std::string(1, letter) : fmt::format("%{:02x}", static_cast<unsigned char>(letter));
  }
  return out;
}

std::string from_word(std::string_view word) {
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = word.data() + i + 1;
    if (word[i] == '%' && i + 2 < word.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += word[i];
    }
  }
  return out;
}

base::Result<Plan> plan(const Target& target, std::vector<std::string> words) {
  const std::string own = target.kubernetes.empty() ? own_path() : "ddpdoctor";
  words.insert(words.begin(), target.program.empty() ? own : target.program);
  if (!target.slurm.empty()) {
    return plan_slurm(target, words);
  }
  return target.kubernetes.empty() ? plan_hosts(target, words) : plan_kubernetes(target, words);
}

}  // namespace ddpdoctor::nodes
