// SPDX-License-Identifier: Apache-2.0
// A call that times out raises where it waited: such a traceback is the stack of a hung rank.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// The name of these stacks in job_of_dumps.
inline constexpr std::string_view kTimedOut = "its last traceback";

struct LastStack {
  StackDump dump;
  bool timed_out = false;   // false: another rank had given up before
  std::size_t heading = 0;  // its line
};

/// The stack of the last traceback in these lines of one rank, if it ends in a wait for other ranks
/// and the rank raised no exception of its own before.
std::optional<LastStack> last_stack(std::span<const std::string_view> lines);

/// The rank for which torch waits, according to this line.
std::optional<model::Rank> awaited_rank(std::string_view line);

/// Adds to `raised`, as ranks that did not raise, the few members of a group that are not in it, if
/// most members raised. `groups`: those that locals of tracebacks list.
void add_absent(const std::vector<model::RankSet>& groups, std::map<model::Rank, bool>& raised);

/// Ranks that wrote to the log and did not raise (`raised` says which did), while others timed out:
/// they run and are elsewhere, unless the log shows their call. The job is still. `failed`: ranks
/// with an exception of their own.
void settle_timed_out(std::map<model::Rank, bool> raised, const model::RankSet& failed,
                      model::JobModel& job);

/// The stack of the process is a traceback of a timeout or an interrupt: how it ended then proves
/// nothing.
bool was_ended_while_waiting(const model::Process& process);

}  // namespace ddpdoctor::imports
