// SPDX-License-Identifier: Apache-2.0
// Whether somebody worked between two looks: slow is not hung.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// The same process in another observation; nullptr when it was not there.
const model::Process* same_process(const model::Observation& there, const model::Process& process);

/// The thread ran between the looks and its process used a CPU or moved bytes: a rank that saves or
/// tokenises on one line of its own is slow, one that wakes up to sleep again is not.
bool worked_since(const model::JobModel& job, const model::Process* before,
                  const model::Process& process, const model::Thread& thread);

/// Something that the process started works: a compiler, a download, a worker. Other ranks do not
/// count.
bool a_child_works(const model::JobModel& job, const model::Process& process, int depth = 0);

}  // namespace ddpdoctor::graph
