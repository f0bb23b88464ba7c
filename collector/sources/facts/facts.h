// SPDX-License-Identifier: Apache-2.0
// Facts about the job's surroundings: shared memory, descriptors, file locks, lock files,
// listeners, cgroup kills.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <sys/types.h>

#include "collector/sources/processes/process_table.h"
#include "collector/stacks/stack.h"
#include "collector/stacks/target/maps_table.h"

namespace ddpdoctor::sources {

using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;

/// One fact; `kind` and fields are listed in docs/capture.schema.json.
struct RawFact {
  std::optional<int> rank;
  std::optional<pid_t> pid;
  std::string kind;
  std::map<std::string, Value> fields;
};

class WaitContext;

/// With what the waits of the same snapshot have read already.
std::vector<RawFact> surroundings(WaitContext& context,
                                  const std::vector<stacks::ProcessStacks>& stacks);
/// `maps`, if any, has what the capture of the stacks has read already.
std::vector<RawFact> surroundings(const JobTree& job,
                                  const std::vector<stacks::ProcessStacks>& stacks,
                                  stacks::MapsTable* maps = nullptr);

}  // namespace ddpdoctor::sources
