// SPDX-License-Identifier: Apache-2.0
// Segments of shared memory that a process keeps: how many more it has than in an earlier look.
#pragma once

#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// Adds `grew` and `over_seconds` to each "shm-kept" fact of `now` that has one of the same process
/// in `before`: so many more segments, and the oldest one is still among them. To "worker-memory"
/// `copied_bytes`: shared pages that have become the worker's own.
void add_growth(const std::vector<Fact>& before, std::vector<Fact>& now);

}  // namespace ddpdoctor::model
