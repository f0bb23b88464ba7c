// SPDX-License-Identifier: Apache-2.0
// The loops of the user's source that a thread is in, each with what its iterator tells.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

struct LoopSeen {
  model::CallSite where;  // its header
  std::string header;     // "for batch in loader"
  model::Iteration over;
};

/// Outermost first. A frame whose iterators are not as many as the loops that its source shows is
/// left out, and so is one without source.
std::vector<LoopSeen> loops_seen(const model::JobModel& job, const model::Thread& thread);

/// The loop with its header at this line that a rank is in now; nothing when it is in none.
std::optional<LoopSeen> loop_seen_at(const model::JobModel& job, model::Rank rank,
                                     const model::CallSite& header);

/// "in step 3 of 21 (DataLoader with DistributedSampler)"; what is unknown is left out.
std::string steps_text(const model::Iteration& over);

/// One sentence for all ranks of whom the same is to be said, at most ten: "ranks 0-2 are in step
/// 3 of 21 (tuple)". Ranks without a count are left out.
void add_steps(const std::vector<std::pair<model::Rank, model::Iteration>>& steps,
               Finding& finding);

}  // namespace ddpdoctor::detectors
