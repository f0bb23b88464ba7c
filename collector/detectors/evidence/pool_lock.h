// SPDX-License-Identifier: Apache-2.0
// The lock of a pool that only its workers take: a worker that is killed while it has the lock
// leaves it locked, and every other worker waits for it.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// All workers of a pool wait for the lock in which they read their next task, so that none of them
/// has it. Nothing if a worker is elsewhere, or if the process that started them was not read.
std::optional<Finding> lock_of_lost_worker(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
