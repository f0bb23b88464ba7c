// SPDX-License-Identifier: Apache-2.0
// Builds the processes of a job from stack dumps: the role and rank of each, and what all dumps of
// one job show together.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// The rank in a file name: "rank_3.txt", "node0-rank3", "py-spy-3.txt", "attempt_0/3/stderr.log"
/// of torchrun's --log-dir. A number that is the pid of a dump in the file does not count.
std::optional<model::Rank> rank_in_path(std::string_view path, const std::vector<StackDump>& dumps);

/// The machine in the name of a file or its folder: "node1" of "node1/stack.txt", "worker-3" of
/// "job-worker-3.txt". Empty if there is none.
std::string host_in_path(std::string_view path);

/// "--local_rank=2", "--rank 2", "RANK=2".
std::optional<model::Rank> rank_in_command(const std::vector<std::string>& command);

/// True for "--local_rank=2" without a global rank.
bool has_only_local_rank(const std::vector<std::string>& command);

/// The number behind the last "rank" of a text that has one: "# MPI rank 0", "rank_3", "rank: 3".
std::optional<model::Rank> rank_in_text(std::string_view text);

/// "=== rank 3 ===": a line above a pasted dump.
std::optional<model::Rank> rank_in_line(std::string_view line);

/// The role (launcher, rank, worker …) from the command and the frames.
model::Role role_in_dump(const model::Process& process);

/// The dumps of one file, with the information in its name. Further snapshots of a process become
/// later observations.
model::JobModel job_of_dumps(std::vector<StackDump> dumps, std::string_view path,
                             std::string_view tool);

/// Call after all files are merged: numbers processes without a rank in start order, turns further
/// snapshots of a process into later observations, and marks ranks that were not dumped as
/// unobserved. Returns false and does nothing if the job has no dumps.
bool settle_dumps(model::JobModel& job);

/// Derives from the user's own line a wait that the tool did not show: input() waits for a person,
/// `with lock:` for that lock, store.get() for a key, open() and recv() for a file or socket.
void infer_waits(model::JobModel& job);

}  // namespace ddpdoctor::imports
