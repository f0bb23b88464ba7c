// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/members.h"

namespace ddpdoctor::graph {

model::RankSet members_of(const GroupView& view, const std::vector<Standing>& standings) {
  if (!view.group.ranks.empty() || view.progress.empty()) {
    return model::RankSet(view.group.ranks);
  }
  std::vector<model::Rank> ranks;
  for (const RankProgress& progress : view.progress) {
    ranks.push_back(progress.rank);
  }
  for (const Standing& one : standings) {
    if (one.call && one.call->group == view.group.id) {
      ranks.push_back(one.rank);
    }
  }
  return model::RankSet(std::move(ranks));
}

}  // namespace ddpdoctor::graph
