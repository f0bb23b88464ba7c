// SPDX-License-Identifier: Apache-2.0
// The attach path: finds the job, takes two snapshots, builds the model.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "collector/model/job_model.h"
#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::monitor {

struct ObserveOptions {
  bool whole_tree = true;
  bool allow_stop = true;
  bool native = true;
  // Main threads only, no state of torch: for a job that must not be disturbed.
  bool glance = false;
  bool values = true;  // of the user's decisions and locals; never with `glance`
  int samples = 2;
  double interval = 0.5;  // seconds between observations
  // As read just before, for the first observation; null = they are read.
  const sources::ProcessTable* processes = nullptr;
};

/// Observes the job around `pid`. Fails with reason and remedy if nothing could be observed.
base::Result<model::JobModel> observe(pid_t pid, const ObserveOptions& options);

/// Adds a warning if the evidence contains no Python process or no rank, because every other
/// sentence would be misread without it. Call after all evidence is in.
void note_what_it_is_not(model::JobModel& job);

}  // namespace ddpdoctor::monitor
