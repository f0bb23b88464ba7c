// SPDX-License-Identifier: Apache-2.0
// Other processes that may yet end a wait: who is at the other end, and who stands around the
// ranks.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// The process at the other end of what the thread waits for works, or is in a short pause of it,
/// or waits in turn for one that does.
bool its_server_works(const model::JobModel& job, const model::Process& process,
                      const model::Thread& thread, int depth = 0);

/// A process of the job that is neither rank nor launcher of torch's, nor below a rank, pauses for
/// a moment: it may start a rank, feed a pipe, connect.
bool an_outsider_goes_on(const model::JobModel& job);

}  // namespace ddpdoctor::graph
