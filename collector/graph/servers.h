// SPDX-License-Identifier: Apache-2.0
// Other processes that may still end a wait: those at the other end of a connection, and helpers
// around the ranks.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// The process at the other end of the thread's wait works, pauses briefly, or itself waits for one
/// that does.
bool its_server_works(const model::JobModel& job, const model::Process& process,
                      const model::Thread& thread, int depth = 0);

/// A process of the job that is neither a rank nor torch's launcher nor below a rank pauses
/// briefly: it may start a rank, feed a pipe or connect.
bool an_outsider_goes_on(const model::JobModel& job);

}  // namespace ddpdoctor::graph
