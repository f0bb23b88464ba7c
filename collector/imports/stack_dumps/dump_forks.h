// SPDX-License-Identifier: Apache-2.0
// Processes of one text of which one was forked from another.
#pragma once

#include <vector>

#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Gives forked children their parent. Removes processes that are known only by their threads.
void relate_forks(std::vector<StackDump>& dumps, model::JobModel& job);

/// A process waits for a child that multiprocessing forked, and one other process with a single
/// thread was dumped: it is that child.
void tell_awaited_child(model::JobModel& job);

}  // namespace ddpdoctor::imports
