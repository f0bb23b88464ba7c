// SPDX-License-Identifier: Apache-2.0
// Ranks that did not answer NCCL's RAS subsystem and for which no other evidence exists.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

struct SilentRank {
  model::Rank rank = 0;
  // According to RAS: no answer for a minute, over several connections.
  bool considered_dead = false;
  std::optional<pid_t> pid;
  std::string host;

  /// "process 77 on node1", "its process".
  [[nodiscard]] std::string process() const;
};

/// Ascending by rank. Omits ranks seen running, because their network may be the problem.
std::vector<SilentRank> silent_for_ras(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
