// SPDX-License-Identifier: Apache-2.0
// A thread holds a lock and waits inside its block for something that another thread of the process
// must do first, while that thread waits for the lock.
#pragma once

#include <optional>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The two threads of one process; neither can continue.
struct WaitUnderLock {
  const model::Thread* holder = nullptr;
  const model::Thread* wanter = nullptr;
  std::string lock;     // its name from python_locks
  std::string awaited;  // "self.incoming.put"; empty if the holder's line does not show it
  bool proven = false;  // the other thread's source does what the holder waits for
};

/// Nothing if the holder's wait has a timeout, or a third thread may end it.
std::optional<WaitUnderLock> wait_under_lock(const model::JobModel& job,
                                             const model::Process& process);

}  // namespace ddpdoctor::detectors
