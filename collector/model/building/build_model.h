// SPDX-License-Identifier: Apache-2.0
// Evidence → JobModel: the only place that aligns what different sources say.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/facts/facts.h"
#include "collector/sources/processes/process_table.h"
#include "collector/sources/waits/targets.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::model {

/// One look at the job.
struct Look {
  double time = 0;  // seconds since the epoch
  sources::JobTree tree;
  std::vector<stacks::ProcessStacks> stacks;  // one for each process of the tree, same order
  std::map<std::pair<pid_t, pid_t>, sources::WaitTarget> waits;
  std::vector<sources::RawFact> facts;
  bool whole_tree = true;  // false: one process on purpose; the others are unobserved, not absent
};

/// Looks oldest first. Reads the user's source files that frames name (the one thing read here).
JobModel build_model(const std::vector<Look>& looks);

/// Adds the lines of every user file that frames and call sites name, and of the modules beside
/// them that they import, each file up to a cap.
void load_sources(JobModel& job);

/// The same for stacks that another tool dumped, perhaps elsewhere: files of this machine, relative
/// names from the current folder, and only where all that is known of a file agrees with it.
void load_local_sources(JobModel& job);

}  // namespace ddpdoctor::model
