// SPDX-License-Identifier: Apache-2.0
// Calls of NCCL as the agent records them, made comparable with calls of process groups: which of
// the two tells a call when both were seen, and which calls have not come yet because they wait in
// a stream.
#pragma once

#include <string>
#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// A communicator of NCCL itself, below torch's groups.
bool is_communicator(const sources::RecordedGroup& group);

/// A call in a group of torch whose backend is NCCL.
bool is_of_nccl(const JobModel& job, const CollectiveCall& call);

/// Whether torch told the calls of its NCCL groups for every one of these ranks (its flight
/// recorder does): then NCCL's own record of the same calls is left out. docs/adr/0012.
bool told_above_nccl(const JobModel& job, const RankSet& ranks);

/// By index of Recording::calls: launched, but on a stream that an unfinished call of another group
/// occupies. For the other ranks such a call has not come.
std::vector<bool> queued_behind_others(const sources::Recording& recording);

/// Ranks that run NCCL's threads while their recordings hold none of its communicators: linked
/// statically, out of the agent's sight.
RankSet with_unseen_nccl(const JobModel& job, const std::vector<sources::Recording>& recordings);

/// Living ranks whose GPU's driver had not answered the agent for a while when they were looked at:
/// what their calls have come to since then nobody knows.
RankSet with_silent_driver(const JobModel& job, const std::vector<sources::Recording>& recordings);

/// Both as warnings for the reader of a report.
std::vector<std::string> warnings_of_gpus(const JobModel& job,
                                          const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
