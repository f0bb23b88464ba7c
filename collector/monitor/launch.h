// SPDX-License-Identifier: Apache-2.0
// Starts the job's command as a shell would, with the same terminal, descriptors and process group;
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

/// Returns the child's pid. This process becomes the subreaper, so that processes whose parent
/// exits stay below it.
tl::expected<pid_t, LaunchError> launch(const LaunchOptions& options);

/// The agent next to this program (build tree) or in ../lib/ddpdoctor (installed); empty if there
/// is none.
std::string find_agent();

}  // namespace ddpdoctor::monitor
