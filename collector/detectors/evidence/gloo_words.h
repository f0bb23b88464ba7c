// SPDX-License-Identifier: Apache-2.0
// What gloo says before it ends a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// A rank got a message of another size than its call expects.
struct GlooSizes {
  std::optional<model::Rank> rank;  // who got it: by its line, or as the only one that aborted
  std::int64_t received = 0;        // bytes
  std::int64_t expected = 0;        // bytes
  std::string line;
};

/// From the logs: "op.preamble.length <= op.nbytes. 192 vs 4".
std::vector<GlooSizes> gloo_sizes(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
