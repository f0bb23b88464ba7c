// SPDX-License-Identifier: Apache-2.0
// The input of every detector: the job and three views of it that all detectors need, computed
// once.
#pragma once

#include <vector>

#include "base/memo.h"
#include "collector/graph/divergence.h"
#include "collector/graph/history.h"
#include "collector/graph/standing.h"
#include "collector/graph/wait_for.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// A job and its views. `standings` point into `job`, which must outlive this.
struct Examination {
  const model::JobModel& job;
  std::vector<Standing> standings;  // one per rank, in rank order
  std::vector<GroupView> groups;    // the world first
  WaitForGraph waits;
  History history = {};
  base::Memo memo = {};  // results that several detectors need

  [[nodiscard]] const Standing* standing(model::Rank rank) const;
  [[nodiscard]] const GroupView* group(std::string_view id) const;
  /// True if the job makes no progress between two observations (or according to the recorders).
  [[nodiscard]] bool still() const {
    return job.progress == model::Progress::kStill;
  }
};

Examination examine(const model::JobModel& job);

}  // namespace ddpdoctor::graph
