// SPDX-License-Identifier: Apache-2.0
// attach for a job on many nodes: the words that say which nodes, and the look at all of them.
#pragma once

#include <string>

#include "base/result.h"
#include "collector/model/job_model.h"
#include "collector/monitor/observe.h"
#include "collector/nodes/launchers.h"

namespace CLI {
class App;
}

namespace ddpdoctor::cli {

/// --slurm, --hosts, --kubernetes and what goes with them, as typed.
struct NodeOptions {
  nodes::Target target;
  std::string job;
  double deadline = 20;

  /// Whether the command line asks for nodes at all.
  [[nodiscard]] bool wanted() const;
};

void declare_nodes(CLI::App& app, NodeOptions& options);

/// Words that contradict each other, or belong to a look at nodes and none are named.
base::Result<void> check(const NodeOptions& options);

/// Looks at every node; the job as all of them saw it.
base::Result<model::JobModel> look_at_nodes(const NodeOptions& options,
                                            const monitor::ObserveOptions& observe);

}  // namespace ddpdoctor::cli
