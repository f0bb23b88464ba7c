// SPDX-License-Identifier: Apache-2.0
// Messages of gloo before it ends a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// A rank received a message of another size than its call expects.
struct GlooSizes {
  // The receiver: by its line prefix, or as the only rank that aborted.
  std::optional<model::Rank> rank;
  std::int64_t received = 0;  // bytes
  std::int64_t expected = 0;  // bytes
  std::string line;
};

/// From the logs: "op.preamble.length <= op.nbytes. 192 vs 4".
std::vector<GlooSizes> gloo_sizes(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
