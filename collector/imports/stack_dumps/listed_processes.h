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

/// For a job without stacks, facts that need none: a process that sleeps in the kernel
/// ("kernel-stack"), has exited and is not collected ("listed-zombie"), or was stopped by a signal
/// ("listed-stopped").
void note_states(model::JobModel& job);

/// Gives kernel stacks the state of their row.
void give_states(model::JobModel& job);

void forget_rows(model::JobModel& job);

/// The position of each process among the children of its parent that have its command, in the
/// order of their pids, if it is not the only one. A launcher starts its ranks in this order.
std::map<pid_t, model::Rank> places_among_siblings(const model::JobModel& job);

}  // namespace ddpdoctor::imports
