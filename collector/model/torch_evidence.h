// SPDX-License-Identifier: Apache-2.0
// What torch.distributed said inside each rank → groups and calls of the job.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::model {

/// One rank's own account.
struct TorchWitness {
  Rank rank = 0;
  const stacks::TorchState* state = nullptr;
};

/// Merges groups by torch's name for them and fills job.groups and job.collectives. Two groups of
/// one name with different members are kept apart. Wants job.world_size.
void add_torch_evidence(JobModel& job, const std::vector<TorchWitness>& witnesses);

/// What a record says of its call, without rank and group; the peer is still a rank of its group.
CollectiveCall call_of_record(const stacks::FlightRecord& record);

/// Declares the groups that only calls name, and gives the world its members.
void complete_groups(JobModel& job);

}  // namespace ddpdoctor::model
