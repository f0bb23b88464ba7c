// SPDX-License-Identifier: Apache-2.0
// attach for a job on many nodes: the options that select the nodes, and the snapshot of all of
// them.
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

/// --slurm, --hosts, --kubernetes, --ray and related options, as typed.
struct NodeOptions {
  nodes::Target target;
  std::string job;
  double deadline = 20;

  /// True if the command line selects nodes.
  [[nodiscard]] bool wanted() const;
};

void declare_nodes(CLI::App& app, NodeOptions& options);

/// Refuses options that contradict each other, and options for nodes without any node.
base::Result<void> check(const NodeOptions& options);

/// Takes a snapshot on every node; returns the job as seen by all of them.
base::Result<model::JobModel> look_at_nodes(const NodeOptions& options,
                                            const monitor::ObserveOptions& observe);

}  // namespace ddpdoctor::cli
