// SPDX-License-Identifier: Apache-2.0
// Finds dumps that are snapshots of the same process. A pid is not enough: in containers every rank
// may be pid 1, and a number in a file name is either a rank or counts snapshots.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// What is the same when a process is dumped again: its machine, its pid or main thread, its rank.
/// Two ranks are never one process.
using Identity = std::tuple<std::string, std::int64_t, std::int64_t>;

Identity identity_of(const model::Process& process);

/// A dump without a rank gets that of the only rank with this pid on this machine.
void share_ranks(std::vector<model::Process>& processes);

/// The only process of a file that may be a rank gets the rank in the file name.
void give_rank(std::vector<model::Process>& processes, model::Rank rank);

/// The same for a number alone ("dump_2.txt"), which is kept until all files are known.
void note_number(std::vector<model::Process>& processes, model::Rank number, model::JobModel& job);

/// Turns kept numbers into ranks. The number of one file alone may count anything and makes none.
/// Returns true, and makes no ranks, if several belong to one pid: they are then snapshots of it.
bool take_numbers(model::JobModel& job);

/// Each process occurs at most once per observation; the last snapshot of each is in the last one.
std::vector<model::Observation> separated(std::vector<model::Process> processes, double interval);

/// Of two dumps of a process in one snapshot, moves the first to an earlier snapshot that lacks it:
/// some files hold several snapshots, and others only one.
void spread_looks(std::vector<model::Observation>& observations);

/// File and name of the user's function that multiprocessing runs; empty if it runs none. The stack
/// of a forked child begins with that of its parent.
std::string target_of(const model::Process& process);

}  // namespace ddpdoctor::imports
