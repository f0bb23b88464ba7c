// SPDX-License-Identifier: Apache-2.0
// Stack dumps → processes of a job: what each one is, which rank, and what the dumps of one job say
// together.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// The rank that a file is named after: "rank_3.txt", "node0-rank3", "py-spy-3.txt",
/// "attempt_0/3/stderr.log" of torchrun's --log-dir. A number that is the pid of a dump in it is
/// none.
std::optional<model::Rank> rank_in_path(std::string_view path, const std::vector<StackDump>& dumps);

/// The machine that a file or its folder is named after: "node1" of "node1/stack.txt", "worker-3"
/// of "job-worker-3.txt". Empty when there is none.
std::string host_in_path(std::string_view path);

/// "--local_rank=2", "--rank 2", "RANK=2".
std::optional<model::Rank> rank_in_command(const std::vector<std::string>& command);

/// "=== rank 3 ===": a line above a pasted dump.
std::optional<model::Rank> rank_in_line(std::string_view line);

/// Launcher, rank, worker …, from the command and the frames.
model::Role role_in_dump(const model::Process& process);

/// The dumps of one file, with what its name says. Looks at one process again become later
/// observations.
model::JobModel job_of_dumps(std::vector<StackDump> dumps, std::string_view path,
                             std::string_view tool);

/// After all files have been merged: processes without a rank are numbered as they were started,
/// looks at one process again become later observations, and ranks that were not dumped are
/// unobserved. False, and nothing is done, when the job has no dumps.
bool settle_dumps(model::JobModel& job);

/// What the user's own line says of a wait that the tool did not show: input() asks a person, `with
/// lock:` wants that lock, store.get() a key, open() and recv() a file or socket.
void infer_waits(model::JobModel& job);

}  // namespace ddpdoctor::imports
