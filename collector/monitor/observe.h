// SPDX-License-Identifier: Apache-2.0
// The attach path: find the job, look at it twice, build the model.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::monitor {

struct ObserveOptions {
  bool whole_tree = true;
  bool allow_stop = true;
  bool native = true;
  bool glance = false;  // main threads only, no torch: of a job that is not to notice
  bool values = true;   // of the user's decisions and locals; never at a glance
  int samples = 2;
  double interval = 0.5;  // seconds between observations
};

/// Looks at the job around `pid`; fails when nothing at all could be observed, with the reason and
/// the remedy.
base::Result<model::JobModel> observe(pid_t pid, const ObserveOptions& options);

/// Warns when no Python, or no rank, is in what is known: every other sentence would be misread
/// without it. To be asked when all evidence is in.
void note_what_it_is_not(model::JobModel& job);

}  // namespace ddpdoctor::monitor
