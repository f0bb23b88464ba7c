// SPDX-License-Identifier: Apache-2.0
// All nodes are asked at once: each finds its job and says so, all look at one moment, each sends
// what it saw. Who has not answered when the time is over is named and nothing more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collector/nodes/launchers.h"

namespace ddpdoctor::nodes {

struct AskOptions {
  std::string session;   // what the nodes' messages begin with
  double deadline = 20;  // seconds for everything
  double gather = 8;     // of these, how long those who are ready wait for the others
};

/// A node's clock against ours, from the shortest of a few questions.
struct Clock {
  double ahead = 0;  // seconds
  double error = 0;  // at most, either way
};

/// What one node gave, or why it gave nothing.
struct Answer {
  std::string node;  // as the launcher calls it
  std::string host;  // as it calls itself
  std::string job;   // the same text on every node of one job; empty = unknown there
  std::optional<Clock> clock;
  std::optional<double> looked;        // when, by our clock, seconds since the epoch
  std::optional<std::string> capture;  // a recording's bytes, from anybody
  base::Error problem;                 // why there is no capture
};

/// One answer per node, in their order.
std::vector<Answer> ask(const std::vector<NodeCommand>& nodes, const AskOptions& options);

/// Sixteen letters that nobody guesses.
std::string new_session();

}  // namespace ddpdoctor::nodes
