// SPDX-License-Identifier: Apache-2.0
// The main threads of all ranks as one prefix tree, with a rank set at every node: the ranks
// diverge where the tree branches.
#pragma once

#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::diagnosis {

/// A frame shared by `ranks`; children are the frames called from it (outermost first at the root).
struct StackNode {
  model::Frame frame;
  model::RankSet ranks;
  std::vector<StackNode> children;
};

struct StackDiff {
  std::vector<StackNode> roots;
};

StackDiff stack_diff(const model::JobModel& job);

}  // namespace ddpdoctor::diagnosis
