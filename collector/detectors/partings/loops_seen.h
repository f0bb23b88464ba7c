// SPDX-License-Identifier: Apache-2.0
// The loops of the user's source that a thread is in, each with the state of its iterator.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

struct LoopSeen {
  model::CallSite where;  // position of its header
  std::string header;     // "for batch in loader"
  model::Iteration over;
};

/// Outermost first. Omits frames without source, and frames whose number of iterators differs from
/// the number of loops in the source.
std::vector<LoopSeen> loops_seen(const model::JobModel& job, const model::Thread& thread);

/// The loop with its header at this line that a rank is in now; nothing if it is in none.
std::optional<LoopSeen> loop_seen_at(const model::JobModel& job, model::Rank rank,
                                     const model::CallSite& header);

/// "in step 3 of 21 (DataLoader with DistributedSampler)"; unknown parts are omitted.
std::string steps_text(const model::Iteration& over);

/// One sentence for all ranks with the same text, at most ten: "ranks 0-2 are in step 3 of 21
/// (tuple)". Omits ranks without a count.
void add_steps(const std::vector<std::pair<model::Rank, model::Iteration>>& steps,
               Finding& finding);

}  // namespace ddpdoctor::detectors
