// SPDX-License-Identifier: Apache-2.0
// File locks that a forked child keeps: /proc/locks names the process that took them.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// A thread that has slept since an earlier snapshot still has the wait of that snapshot. If the
/// newest facts show that the process that took the lock has closed the file and its child has it
/// open, the thread waits for the child.
void name_heirs_of_locks(JobModel& job);

}  // namespace ddpdoctor::model
