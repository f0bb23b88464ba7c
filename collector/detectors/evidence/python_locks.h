// SPDX-License-Identifier: Apache-2.0
// Locks of Python name no owner; the source around the lines of the stacks says who has entered
// which.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The lock that the innermost line of the thread takes, by a name that tells locks of one spelling
/// apart: `self.lock` in Buffer.add is "Buffer.lock", a module's own `lock` is "lock of buffer.py".
std::optional<std::string> lock_wanted_by(const model::JobModel& job, const model::Thread& thread);

/// Locks entered on the way to each user line of the stack, without the one that is only wanted.
std::set<std::string> locks_held_by(const model::JobModel& job, const model::Thread& thread);

/// A thread of the process that holds the lock this one waits for; nullptr when none is seen to.
const model::Thread* holder_of_wanted_lock(const model::JobModel& job,
                                           const model::Process& process,
                                           const model::Thread& waiter);

}  // namespace ddpdoctor::detectors
