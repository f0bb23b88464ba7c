// SPDX-License-Identifier: Apache-2.0
// Torch's flight recorder does not keep the root of a broadcast, the operation of a reduction or
// the splits of an all_to_all; NCCL was given all of them.
#pragma once

#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// Adds to the recorded calls of torch's groups what the calls of NCCL below them show. `below`:
/// those calls, of communicators that the job lists as groups. A communicator counts only if
/// exactly one group of torch has its members, and if order, operation and size of all calls are
/// the same.
void add_arguments_of_nccl(JobModel& job, const std::vector<CollectiveCall>& below);

}  // namespace ddpdoctor::model
