// SPDX-License-Identifier: Apache-2.0
#include "cli/attach_nodes.h"

#include <algorithm>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/progress.h"
#include "collector/nodes/ask.h"
#include "collector/nodes/gather.h"

namespace ddpdoctor::cli {

namespace {

constexpr double kLongestDeadline = 3600;
constexpr double kShortestDeadline = 1;
// Share of the deadline in which nodes that are ready wait for the others.
constexpr double kGatherPart = 0.4;
// Seconds after the deadline at which a node ends if it was not stopped.
constexpr double kGrace = 5;

/// The command line of ddpdoctor on each node. No word may need quotes, because two shells may read
/// it.
std::vector<std::string> words_for_nodes(const NodeOptions& options, const nodes::AskOptions& ask,
                                         const monitor::ObserveOptions& observe) {
  std::vector<std::string> words{"capture",
                                 "--session",
                                 ask.session,
                                 "--wait",
                                 fmt::format("{:.1f}", ask.gather),
                                 "--limit",
                                 fmt::format("{:.1f}", ask.deadline + kGrace),
                                 "--samples",
                                 std::to_string(observe.samples),
                                 "--interval",
                                 fmt::format("{:g}", observe.interval)};
  if (!observe.allow_stop) {
    words.emplace_back("--no-stop");
  }
  if (!observe.values) {
    words.emplace_back("--no-values");
  }
  if (!options.job.empty()) {
    words.insert(words.end(), {"--job", nodes::as_word(options.job)});
  }
  if (!options.target.slurm.empty()) {
    words.insert(words.end(), {"--variable", "SLURM_JOB_ID=" + options.target.slurm});
  }
  return words;
}

}  // namespace

bool NodeOptions::wanted() const {
  return !target.slurm.empty() || !target.kubernetes.empty() || !target.ray.empty() ||
         !target.hosts.empty();
}

void declare_nodes(CLI::App& app, NodeOptions& options) {
  const char* const group = "A job on many nodes";
  nodes::Target& target = options.target;
  app.add_option("--slurm", target.slurm, "every node of this Slurm job, by srun --overlap")
      ->type_name("JOBID")
      ->group(group);
  app.add_option("--hosts", target.hosts, "these hosts, by ssh: node1,node2 or node[01-16]")
      ->type_name("LIST")
      ->group(group);
  app.add_option("--kubernetes", target.kubernetes, "every pod with these labels, by kubectl exec")
      ->type_name("SELECTOR")
      ->group(group);
  app.add_option("--namespace", target.name_space, "of these pods")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--container", target.container, "in these pods")->type_name("NAME")->group(group);
  app.add_option("--ray", target.ray,
                 "every node of the Ray cluster with this address (auto: of this machine), by ssh")
      ->type_name("ADDRESS")
      ->group(group);
  app.add_option("--launcher", target.launcher,
                 "with --hosts or --ray: a shell command with {host} and {command}, instead of ssh")
      ->type_name("CMD")
      ->group(group);
  app.add_option("--program", target.program,
                 "ddpdoctor on the nodes; without it, the path of this one (in pods: from PATH)")
      ->type_name("PATH")
      ->group(group);
  app.add_option("--job", options.job,
                 "where nodes run several jobs: a part of the command or address of the one meant")
      ->type_name("TEXT")
      ->group(group);
  app.add_option("--deadline", options.deadline,
                 "seconds for all nodes; the report names nodes that have not answered by then")
      ->type_name("S")
      ->capture_default_str()
      ->group(group);
}

base::Result<void> check(const NodeOptions& options) {
  const nodes::Target& target = options.target;
  const auto ways = static_cast<int>(!target.slurm.empty()) +
                    static_cast<int>(!target.kubernetes.empty()) +
                    static_cast<int>(!target.ray.empty()) + static_cast<int>(!target.hosts.empty());
  if (ways > 1) {
    return base::failure("attach: --slurm, --hosts, --kubernetes and --ray exclude each other",
                         "name the nodes in one way");
  }
  if (!target.launcher.empty() && target.hosts.empty() && target.ray.empty()) {
    return base::failure("--launcher: no host was named", "add --hosts node1,node2");
  }
  if ((!target.name_space.empty() || !target.container.empty()) && target.kubernetes.empty()) {
    return base::failure("--namespace and --container belong to --kubernetes SELECTOR");
  }
  if (ways == 0 && (!options.job.empty() || !target.program.empty())) {
    return base::failure("--job and --program belong to --slurm, --hosts, --kubernetes or --ray");
  }
  if (!(options.deadline >= kShortestDeadline && options.deadline <= kLongestDeadline)) {
    return base::failure(fmt::format("--deadline {}: expected {} to {} seconds", options.deadline,
                                     kShortestDeadline, kLongestDeadline));
  }
  return {};
}

base::Result<model::JobModel> look_at_nodes(const NodeOptions& options,
                                            const monitor::ObserveOptions& observe) {
  const nodes::AskOptions ask{.session = nodes::new_session(),
                              .deadline = options.deadline,
                              .gather = options.deadline * kGatherPart};
  const Progress progress("reading the job on all nodes …");
  const nodes::Plan plan = TRY(nodes::plan(options.target, words_for_nodes(options, ask, observe)));
  return nodes::gather(nodes::ask(plan.nodes, ask),
                       {.one_job = !options.job.empty() || !options.target.slurm.empty(),
                        .unreachable = plan.unreachable});
}

}  // namespace ddpdoctor::cli
