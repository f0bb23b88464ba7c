// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/polled_state.h"

#include <algorithm>
#include <string_view>

#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::graph {
bool changes_what_is_polled(const model::JobModel& job, const model::Thread& other,
                            const model::Thread& thread) {
  const model::Frame* asks = model::user_frame(thread);
  const model::Frame* works = model::user_frame(other);
  const auto here = asks == nullptr ? job.sources.end() : job.sources.find(asks->file);
  const auto there = works == nullptr ? job.sources.end() : job.sources.find(works->file);
  if (here == job.sources.end() || there == job.sources.end()) {
    return false;
  }
  const auto loop = program::loop_around(here->second, asks->line);
  const auto extent = program::function_extent(there->second, works->line);
  if (!loop || loop->kind != program::BlockKind::kWhile || !extent) {
    return false;
  }
  const auto things = program::values_read(loop->condition);
  for (auto at = there->second.lower_bound(extent->first);
       at != there->second.end() && at->first <= extent->second; ++at) {
    const std::string_view line = at->second;
    if (std::any_of(things.begin(), things.end(),
                    [line](std::string_view thing) { return program::changes(line, thing); })) {
      return true;
    }
  }
  return false;
}

}  // namespace ddpdoctor::graph
