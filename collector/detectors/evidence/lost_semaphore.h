// SPDX-License-Identifier: Apache-2.0
// A semaphore that only DataLoader workers wait for, and that no process is left to release: an
// exception came between acquire and release.
#pragma once

#include <set>
#include <string_view>

#include <sys/types.h>

#include "collector/detectors/evidence/waiting_circle.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

inline constexpr std::string_view kReleaseSemaphore =
    "Release the semaphore in `finally`, or take it using `with`: an exception on the way, or a "
    "process that was killed, has kept it.";

/// The knot is such a semaphore, and the workers are those of ranks.
bool is_lost_by_workers(const model::JobModel& job, const WaitingCircle& circle);

/// Pids of the workers that wait for one.
std::set<pid_t> waiting_for_lost_semaphore(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
