// SPDX-License-Identifier: Apache-2.0
// Asks every node that is heard to look at one moment, over the transport: the conversation is the
// one of `attach --hosts`, and so are the answers.
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
  double deadline = 10;  // seconds for everything
  double gather = 2;     // of these, how long those who are ready wait for the others
};

/// Gets every message that is no answer.
using Listener = std::function<void(const transport::Packet&)>;

/// One answer per node of `nodes` (by their words).
std::vector<nodes::Answer> ask_fleet(transport::Transport& transport, const std::string& job,
                                     const std::vector<std::string>& nodes,
                                     const AskFleetOptions& options, const Listener& others);

}  // namespace ddpdoctor::fleet
