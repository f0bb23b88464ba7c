// SPDX-License-Identifier: Apache-2.0
// Asks all nodes at once: each finds its job and reports it, all take a snapshot at the same
// moment, each sends its capture. Nodes without an answer at the deadline are named.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collector/nodes/launchers.h"

namespace ddpdoctor::nodes {

struct AskOptions {
  std::string session;   // first word of the nodes' messages
  double deadline = 20;  // seconds in all
  double gather = 8;     // seconds of `deadline` in which nodes that are ready wait for the others
};

/// A node's clock relative to ours, from the fastest of a few exchanges.
struct Clock {
  double ahead = 0;  // seconds
  double error = 0;  // maximum, in either direction
};

/// What one node sent, or why it sent nothing.
struct Answer {
  std::string node;  // name used by the launcher
  std::string host;  // name used by the node itself
  std::string job;   // equal on every node of one job; empty = unknown there
  std::optional<Clock> clock;
  std::optional<double> looked;        // time of the snapshot by our clock, seconds since the epoch
  std::optional<std::string> capture;  // bytes of a recording; not trusted
  base::Error problem;                 // why there is no capture
};

/// One answer per node, in the order of `nodes`.
std::vector<Answer> ask(const std::vector<NodeCommand>& nodes, const AskOptions& options);

/// Sixteen random letters.
std::string new_session();

}  // namespace ddpdoctor::nodes
