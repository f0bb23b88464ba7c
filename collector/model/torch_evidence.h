// SPDX-License-Identifier: Apache-2.0
// Turns the state of torch.distributed in each rank into groups and calls of the job.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::model {

/// The state in one rank.
struct TorchWitness {
  Rank rank = 0;
  const stacks::TorchState* state = nullptr;
};

/// Merges groups by torch's names and fills job.groups and job.collectives, and adds the frames of
/// the newest calls to job.facts. Two groups with one name but different members stay separate.
/// Needs job.world_size.
void add_torch_evidence(JobModel& job, const std::vector<TorchWitness>& witnesses);

/// The call of a record, without rank and group; the peer is still a group rank.
CollectiveCall call_of_record(const stacks::FlightRecord& record);

/// Adds the groups that only calls name, and the members of the world.
void complete_groups(JobModel& job);

}  // namespace ddpdoctor::model
