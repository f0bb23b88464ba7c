// SPDX-License-Identifier: Apache-2.0
// Two threads that wait for each other, where neither memory nor the names in the source show which
// lock is which: only they hold locks, and both wait for one.
#pragma once

#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The two threads of the process that each hold a lock by the source and wait for one, if no other
/// thread of the process holds any. Otherwise empty.
std::vector<const model::Thread*> closed_circle(const model::JobModel& job,
                                                const model::Process& process);

}  // namespace ddpdoctor::detectors
