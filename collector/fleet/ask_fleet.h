// SPDX-License-Identifier: Apache-2.0
// Asks every known node for a snapshot at the same moment, over the transport. The conversation and
// the answers are those of `attach --hosts`.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collector/fleet/job_state.h"
#include "collector/nodes/ask.h"
#include "collector/transport/transport.h"

namespace ddpdoctor::fleet {

struct AskFleetOptions {
  double deadline = 10;  // seconds in all
  double gather = 2;     // seconds of `deadline` in which nodes that are ready wait for the others
};

/// Receives every message that is not an answer.
using Listener = std::function<void(const transport::Packet&)>;
/// Whether a node has become silent, so that no answer is expected from it.
using IsSilent = std::function<bool(const std::string& node)>;

/// Returns one answer per node of `nodes` (subject words). A node that becomes silent delays the
/// others no longer.
std::vector<nodes::Answer> ask_fleet(transport::Transport& transport, const std::string& job,
                                     const std::vector<std::string>& nodes,
                                     const AskFleetOptions& options, const Listener& others,
                                     const IsSilent& is_silent);

}  // namespace ddpdoctor::fleet
