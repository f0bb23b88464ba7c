// SPDX-License-Identifier: Apache-2.0
// A lock on a file that a forked child keeps: flock belongs to the open file, which a fork shares,
// so a parent that only closes its descriptor does not release the lock.
#pragma once

#include <string_view>

#include "collector/detectors/detector.h"

namespace ddpdoctor::detectors {

/// The thread waits for a lock that such a child keeps.
bool waits_for_inherited_lock(const model::JobModel& job, const model::Process& process,
                              const model::Thread& thread);

/// One finding of `kind` for each child that keeps a lock for which others wait.
Findings inherited_locks(const graph::Examination& examination, std::string_view kind);

}  // namespace ddpdoctor::detectors
