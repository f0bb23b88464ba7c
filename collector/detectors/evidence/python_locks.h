// SPDX-License-Identifier: Apache-2.0
// Which thread has and wants which Python lock. Only an RLock has an owner, which memory shows; for
// other locks the source around the lines of the stacks shows which thread has entered them.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The lock that the innermost line of the thread takes, by a name that distinguishes equal
/// spellings: `self.lock` in Buffer.add is "Buffer.lock", a module's own `lock` is "lock of
/// buffer.py".
std::optional<std::string> lock_wanted_by(const model::JobModel& job, const model::Thread& thread);

/// Locks entered on the way to each user line of the stack, without the one that the thread waits
/// for.
std::set<std::string> locks_held_by(const model::JobModel& job, const model::Thread& thread);

/// The user's frame that takes a lock: where the innermost one is code of a context (`__enter__`,
/// the generator of a contextmanager), the frame whose `with` entered it; nullptr without one.
const model::Frame* frame_that_takes(const model::JobModel& job, const model::Thread& thread);

/// A thread of the process that holds the lock this one waits for; nullptr if none is known.
const model::Thread* holder_of_wanted_lock(const model::JobModel& job,
                                           const model::Process& process,
                                           const model::Thread& waiter);

}  // namespace ddpdoctor::detectors
