// SPDX-License-Identifier: Apache-2.0
// Builds a JobModel from evidence: the only place that aligns the sources with each other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collector/model/job_model.h"
#include "collector/program/known_texts.h"
#include "collector/sources/facts/facts.h"
#include "collector/sources/processes/process_table.h"
#include "collector/sources/waits/targets.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::model {

/// One snapshot of the job.
struct Look {
  double time = 0;  // seconds since the epoch
  sources::JobTree tree;
  std::vector<stacks::ProcessStacks> stacks;  // one for each process of the tree, same order
  std::map<std::pair<pid_t, pid_t>, sources::WaitTarget> waits;
  std::vector<sources::RawFact> facts;
  // Source files by path that were read and parsed for this snapshot.
  program::KnownTexts texts;
  // false: only one process was requested; the others are unobserved, not absent.
  bool whole_tree = true;
};

/// Snapshots in ascending time. Reads the user's source files that frames name, and no other file.
JobModel build_model(const std::vector<Look>& looks);

/// Adds the lines of every user file that frames and call sites name, and of the modules that they
/// import from nearby folders; the size of each file is limited. A file with the lines of one of
/// `parsed` is not parsed again.
void load_sources(JobModel& job, const program::KnownTexts& parsed = {});

/// The same for stacks that another tool dumped, possibly on another machine: uses files of this
/// machine, with relative names from the current folder, and only if they agree with everything
/// known of the file.
void load_local_sources(JobModel& job);

}  // namespace ddpdoctor::model
