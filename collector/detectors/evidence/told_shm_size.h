// SPDX-License-Identifier: Apache-2.0
// A log that tells the size of /dev/shm: a row of `df`, or Ray's warning at its start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

struct ToldShmSize {
  std::int64_t bytes = 0;
  std::string line;
};

/// The first size that a log tells; nullopt if none does.
std::optional<ToldShmSize> told_shm_size(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
