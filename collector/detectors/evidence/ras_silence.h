// SPDX-License-Identifier: Apache-2.0
// Ranks of which NCCL's RAS subsystem got no answer, and of whose process nothing else is known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

struct SilentRank {
  model::Rank rank = 0;
  bool considered_dead = false;  // for RAS: no answer for a minute, over several connections
  std::optional<pid_t> pid;
  std::string host;

  /// "process 77 on node1", "its process".
  [[nodiscard]] std::string process() const;
};

/// Ascending by rank. Whoever was seen alive is left out: its network may be the matter.
std::vector<SilentRank> silent_for_ras(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
