// SPDX-License-Identifier: Apache-2.0
// The nodes' answers → one job: captures are merged, clocks put right, and what is missing is said.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "collector/model/job_model.h"
#include "collector/nodes/ask.h"

namespace ddpdoctor::nodes {

struct GatherOptions {
  bool one_job = false;  // the user named the job: other settings on a node do not make it another
  std::vector<std::string> unreachable;  // sentences about nodes that were not asked
};

/// Fails when no node gave a capture, and when the nodes run different jobs.
base::Result<model::JobModel> gather(std::vector<Answer> answers, const GatherOptions& options);

/// Every time in a job, by another clock.
void shift_times(model::JobModel& job, double seconds);

}  // namespace ddpdoctor::nodes
