// SPDX-License-Identifier: Apache-2.0
// One snapshot of the job: processes, stacks, what threads wait for, and the surroundings.
#pragma once

#include <optional>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "collector/model/building/build_model.h"
#include "collector/monitor/observe.h"

namespace ddpdoctor::monitor {

/// Captures everything.
base::Result<model::Look> first_look(pid_t pid, const ObserveOptions& options);

/// Takes another snapshot: processes without a thread on a CPU since `before` keep their stacks,
/// the others are captured again.
base::Result<model::Look> next_look(pid_t pid, const model::Look& before,
                                    const ObserveOptions& options);

/// Whether this snapshot alone proves that the job makes no progress: every rank's flight recorder
/// was read, the newest record is older than `quiet_seconds`, and no thread was on a CPU or in
/// uninterruptible sleep. Returns the age of that record in seconds, or nothing.
std::optional<double> still_by_recorders(const model::Look& look, double quiet_seconds);

/// Ranks whose Python code is outside torch's calls, and the processes they started: a rank that
/// saves, sleeps or waits for its own program may be working.
std::vector<pid_t> outside_torch(const model::Look& look);

/// True if one of them used a CPU or moved bytes since the snapshot, or does so now. A program
/// started by a rank always counts, because only a second snapshot shows whether it is idle.
bool has_stirred(const model::Look& look, const std::vector<pid_t>& pids);

/// A rank waits for bytes from outside the job (a file, a server) or from a program that was
/// started beside it: a slow server or a busy disk may take a second per reply, so a shorter
/// interval proves nothing.
bool waits_for_outsider(const model::Look& look);

/// True if `now` is the same process with exactly the stacks of `before`.
bool has_not_run(const stacks::ProcessStacks& before,
                 const std::vector<std::pair<pid_t, std::uint64_t>>& now);

}  // namespace ddpdoctor::monitor
