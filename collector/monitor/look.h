// SPDX-License-Identifier: Apache-2.0
// One look at the job: processes, stacks, what they wait for, what surrounds them.
#pragma once

#include <optional>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "collector/model/building/build_model.h"
#include "collector/monitor/observe.h"

namespace ddpdoctor::monitor {

/// Looks at everything.
base::Result<model::Look> first_look(pid_t pid, const ObserveOptions& options);

/// Looks again: a process none of whose threads was on a CPU since `before` keeps its stacks, the
/// others are captured anew.
base::Result<model::Look> next_look(pid_t pid, const model::Look& before,
                                    const ObserveOptions& options);

/// Whether this single look proves that the job stands still: every rank's flight recorder was
/// read, the newest record of all is older than `quiet_seconds`, and no thread of the job was on a
/// CPU or in uninterruptible sleep. The age of that record in seconds, or nothing.
std::optional<double> still_by_recorders(const model::Look& look, double quiet_seconds);

/// Ranks whose Python is not in a call of torch, and what those have started: a rank that saves,
/// sleeps or waits for a program of its own may be at work.
std::vector<pid_t> outside_torch(const model::Look& look);

/// Whether one of them has used a CPU or moved bytes since the look, or does so right now. A
/// program that a rank has started always counts: whether it does nothing, only a second look
/// shows.
bool has_stirred(const model::Look& look, const std::vector<pid_t>& pids);

/// A rank waits for bytes from outside the job (a file, a server), or from a program that is no
/// part of it but was started beside it: a slow server sends some every second or so, a busy disk
/// may take as long, and a shorter look at it tells nothing.
bool waits_for_outsider(const model::Look& look);

/// Whether `now` shows a process whose stacks are exactly those of `before`.
bool has_not_run(const stacks::ProcessStacks& before,
                 const std::vector<std::pair<pid_t, std::uint64_t>>& now);

}  // namespace ddpdoctor::monitor
