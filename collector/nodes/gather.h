// SPDX-License-Identifier: Apache-2.0
// Builds one job from the nodes' answers: merges captures, corrects clocks, and reports what is
// missing.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "collector/model/job_model.h"
#include "collector/nodes/ask.h"

namespace ddpdoctor::nodes {

struct GatherOptions {
  // The user named the job: different settings on a node do not make it another job.
  bool one_job = false;
  std::vector<std::string> unreachable;  // sentences about nodes that could not be asked
};

/// Fails if no node sent a capture, or if the nodes run different jobs.
base::Result<model::JobModel> gather(std::vector<Answer> answers, const GatherOptions& options);

/// Shifts every time in a job to another clock.
void shift_times(model::JobModel& job, double seconds);

}  // namespace ddpdoctor::nodes
