// SPDX-License-Identifier: Apache-2.0
// A line somewhere in the text has the pid of a process and its rank: "gdb -p 71402  # MPI rank 0".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {

/// Gives ranks to the dumps that have a pid and no rank, if every line with this pid and a rank has
/// the same rank. If two processes have the same rank then, such lines count something else: no
/// rank is given.
void give_ranks_of_pids(const std::vector<std::string_view>& lines, std::vector<StackDump>& dumps);

/// The same for the dumps of all files and the lines of all logs.
void take_ranks_of_logs(model::JobModel& job);

/// The rank that every line with this pid and a rank has; nullopt if there is none, or several.
std::optional<model::Rank> rank_of_pid(const std::vector<std::string_view>& lines,
                                       std::int64_t pid);

}  // namespace ddpdoctor::imports
