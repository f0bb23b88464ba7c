// SPDX-License-Identifier: Apache-2.0
// What process tables show of the dumped processes: parents, forks, states, the order of ranks.
#pragma once

#include <map>
#include <vector>

#include "collector/imports/stack_dumps/process_rows.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Keeps the rows as facts until all files are known.
void note_rows(const std::vector<ProcessRow>& rows, model::JobModel& job);

/// Gives dumped processes the parent, state and command of their row, and reports forks.
void take_rows(model::JobModel& job);

/// If no stack is known, facts that need none: a process that sleeps in the kernel, one that has
/// ended and is not collected ("listed-zombie"), one that a signal stopped ("listed-stopped").
/// Kernel stacks get the state of their row.
void keep_states(model::JobModel& job, bool dumped);

void forget_rows(model::JobModel& job);

/// The position of each process among the children of its parent that have its command, in the
/// order of their pids, if it is not the only one. A launcher starts its ranks in this order.
std::map<pid_t, model::Rank> places_among_siblings(const model::JobModel& job);

}  // namespace ddpdoctor::imports
