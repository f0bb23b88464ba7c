// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/examination.h"

#include <algorithm>
#include <utility>

#include "collector/graph/launch_places.h"
#include "collector/graph/recorded_lines.h"

namespace ddpdoctor::graph {

const Standing* Examination::standing(model::Rank rank) const {
  const auto found =
      std::lower_bound(standings.begin(), standings.end(), rank,
                       [](const Standing& one, model::Rank wanted) { return one.rank < wanted; });
  return found == standings.end() || found->rank != rank ? nullptr : &*found;
}

const GroupView* Examination::group(std::string_view id) const {
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [id](const GroupView& one) { return one.group.id == id; });
  return found == groups.end() ? nullptr : &*found;
}

Examination examine(const model::JobModel& job) {
  mark_recorded_lines(job);
  History history(job);
  place_launches(job, history);
  std::vector<Standing> stands = standings(job, history);
  std::vector<GroupView> groups = group_views(job, stands, history);
  WaitForGraph waits = wait_for(job, stands, groups);
  return Examination{.job = job,
                     .standings = std::move(stands),
                     .groups = std::move(groups),
                     .waits = std::move(waits),
                     .history = std::move(history)};
}

}  // namespace ddpdoctor::graph
