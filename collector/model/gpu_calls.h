// SPDX-License-Identifier: Apache-2.0
// Makes NCCL calls recorded by the agent comparable with calls of process groups: chooses the
// record to use when both exist, and finds calls that have not started because they wait in a
// stream.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// A communicator of NCCL itself, below torch's groups.
bool is_communicator(const sources::RecordedGroup& group);

/// A call in a torch group with the backend NCCL.
bool is_of_nccl(const JobModel& job, const CollectiveCall& call);

/// True if torch recorded the calls of its NCCL groups for every one of these ranks (with its
/// flight recorder): then NCCL's own record of the same calls is ignored. docs/adr/0012.
bool told_above_nccl(const JobModel& job, const RankSet& ranks);

/// Whether the GPU has reached the call in its stream, as the events around the launch show;
/// nothing if they show nothing.
std::optional<bool> begun_on_gpu(const sources::RecordedCall& recorded);

/// By index of Recording::calls: true if the call was launched on a stream that an unfinished call
/// of another group occupies. For the other ranks, such a call has not been made.
std::vector<bool> queued_behind_others(const sources::Recording& recording);

/// Ranks that run NCCL's threads but have no NCCL communicator in their recordings: NCCL is linked
/// statically and invisible to the agent.
RankSet with_unseen_nccl(const JobModel& job, const std::vector<sources::Recording>& recordings);

/// Running ranks whose GPU driver had not answered the agent for some time before the snapshot: the
/// state of their calls since then is unknown.
RankSet with_silent_driver(const JobModel& job, const std::vector<sources::Recording>& recordings);

/// Both as warnings for a report.
std::vector<std::string> warnings_of_gpus(const JobModel& job,
                                          const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
