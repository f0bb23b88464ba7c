// SPDX-License-Identifier: Apache-2.0
// torchrun's reports of failed ranks: the table at the end of its log, and the error file of a
// rank.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// "Root Cause (first observed failure)" and the entries around it → ended processes. Returns the
/// ranks that torchrun ended because another had failed: they were running until then.
std::vector<model::Rank> read_torchrun_text(std::string_view log, model::JobModel& job);

/// The only rank that torchrun's agent of this log started ("global_ranks=[0]"); absent if it
/// started several, or another attempt got a different rank. Adds a fact agent-ranks.
std::optional<model::Rank> sole_rank_of_agent(std::string_view log, model::JobModel& job);

/// A crash report without a rank belongs to the one rank whose watchdog ended it, and its SIGABRT
/// shows only that the rank waited. `ranks_of_path`: the ranks of processes are taken from the
/// file's name, which may number something else.
void settle_watchdog_aborts(bool ranks_of_path, model::JobModel& job);

/// A rank that has ended, without further data.
model::Process failed_rank();

/// Adds the processes to those of the job, each rank once.
void add_ended(std::vector<model::Process> ended, model::JobModel& job);

/// {"message": {"message", "extraInfo": {"py_callstack", "timestamp"}}} of TORCHELASTIC_ERROR_FILE.
bool is_error_file(std::string_view head, std::string_view path);
base::Result<model::JobModel> read_error_file(std::string_view bytes, const std::string& path);

}  // namespace ddpdoctor::imports
