// SPDX-License-Identifier: Apache-2.0
// The condition by which some ranks left a loop that others are in, also if the user's generator
// behind the loop tests it.
#pragma once

#include <optional>
#include <vector>

#include "collector/detectors/paths/source_path.h"
#include "collector/program/origin/items.h"
#include "collector/program/origin/yields.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/data_ends.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {

/// What a loop goes over. The user's generator that yields elements counts as these.
program::Items items_of(const model::JobModel& job, const program::SourceText& lines, int loop);

/// `for step in self.steps()`: the condition in the user's generator that ended it on some ranks,
/// or that chose which of its elements it yields.
std::optional<Branch> end_of_generator(const model::JobModel& job,
                                       const std::vector<program::Yield>& yields,
                                       const model::CallSite& in);

/// The condition by which the ranks diverged at this loop: it leaves the loop, skips one of its
/// calls, or guards the loop. `in`: the line of the ranks that are still in it. `end`: see
/// program::data_end_of().
std::optional<Branch> loop_decision(const model::JobModel& job, const program::SourceText& lines,
                                    const program::Block& loop, const model::CallSite& in,
                                    const std::optional<program::DataEnd>& end);

}  // namespace ddpdoctor::detectors
