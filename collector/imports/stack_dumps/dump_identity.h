// SPDX-License-Identifier: Apache-2.0
// Which dumps are looks at one process. A pid alone does not tell: in the containers of a job every
// rank may be pid 1, and a number in a file's name is a rank or counts looks.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// What stays the same when a process is dumped again: its machine, its pid or main thread, its
/// rank. Two ranks are never one process.
using Identity = std::tuple<std::string, std::int64_t, std::int64_t>;

Identity identity_of(const model::Process& process);

/// A dump without a rank is of the one rank that has this pid on this machine.
void share_ranks(std::vector<model::Process>& processes);

/// The one process of a file that may be a rank takes the rank that the file is named after.
void give_rank(std::vector<model::Process>& processes, model::Rank rank);

/// The same for a mere number ("dump_2.txt"), which is kept until all files are known.
void note_number(std::vector<model::Process>& processes, model::Rank number, model::JobModel& job);

/// Kept numbers become ranks. Several of one pid are taken for looks at it: true, and none of them
/// is a rank.
bool take_numbers(model::JobModel& job);

/// Each process at most once in every observation; the last look at each is in the last one.
std::vector<model::Observation> separated(std::vector<model::Process> processes, double interval);

}  // namespace ddpdoctor::imports
