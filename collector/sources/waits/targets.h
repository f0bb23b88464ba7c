// SPDX-License-Identifier: Apache-2.0
// What a blocked thread waits for, determined from its system call, descriptors, sockets and locks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "collector/sources/processes/process_table.h"
#include "collector/stacks/stack.h"
#include "collector/stacks/target/maps_table.h"

namespace ddpdoctor::sources {

/// `kind` and `target` as in ddpdoctor.capture/1 waits_on.
struct WaitTarget {
  std::string kind;
  std::string target;
  std::string detail;
  std::optional<double> limit{};  // maximum seconds after which the thread wakes by itself
};

class WaitContext;

/// For each (pid, tid) whose wait can be named. The context keeps what it reads, for the facts
/// about the same snapshot.
std::map<std::pair<pid_t, pid_t>, WaitTarget> wait_targets(
    WaitContext& context, const std::vector<stacks::ProcessStacks>& stacks);
std::map<std::pair<pid_t, pid_t>, WaitTarget> wait_targets(
    const JobTree& job, const std::vector<stacks::ProcessStacks>& stacks,
    stacks::MapsTable* maps = nullptr);

}  // namespace ddpdoctor::sources
