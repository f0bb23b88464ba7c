// SPDX-License-Identifier: Apache-2.0
// Shared-memory segments that a process keeps: how many more it has than in an earlier snapshot.
#pragma once

#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// Compares with the facts of the same process in `before`. Adds `grew` (additional segments) and
/// `over_seconds` to each "shm-kept" fact of `now`, if the oldest segment still exists; adds
/// `copied_bytes` (shared pages that became the worker's own) to "worker-memory".
void add_growth(const std::vector<Fact>& before, std::vector<Fact>& now);

}  // namespace ddpdoctor::model
