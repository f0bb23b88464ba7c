// SPDX-License-Identifier: Apache-2.0
// A thread that holds a lock and waits in its block for what another thread of the process has to
// do first, while that one wants the lock.
#pragma once

#include <optional>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// Both threads of one process; neither of them can go on.
struct WaitUnderLock {
  const model::Thread* holder = nullptr;
  const model::Thread* wanter = nullptr;
  std::string lock;     // as python_locks names it
  std::string awaited;  // "self.incoming.put"; empty when the holder's line does not tell
  bool proven = false;  // the wanter's source does what the holder waits for
};

/// Nothing when the holder's wait has a limit, or when a third thread may end it.
std::optional<WaitUnderLock> wait_under_lock(const model::JobModel& job,
                                             const model::Process& process);

}  // namespace ddpdoctor::detectors
