// SPDX-License-Identifier: Apache-2.0
// Starts the job's command as a shell would: same terminal, same descriptors, same process group;
// only the agent is added.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace ddpdoctor::monitor {

struct LaunchOptions {
  std::vector<std::string> command;
  std::string spool;  // folder for rings; empty = no agent
  std::string agent;  // absolute path of libddpdoctor_agent.so; empty = no agent
};

/// Why a command could not be started, with the exit status a shell would give.
struct LaunchError {
  base::Error error;
  int status = 127;  // 126: found but not executable
};

/// The child's pid. We become the subreaper, so that processes which lose their parent stay below
/// us.
tl::expected<pid_t, LaunchError> launch(const LaunchOptions& options);

/// The agent beside this program (build tree) or in ../lib/ddpdoctor (installed); empty when there
/// is none.
std::string find_agent();

}  // namespace ddpdoctor::monitor
