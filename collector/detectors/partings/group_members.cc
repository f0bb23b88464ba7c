// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/group_members.h"

#include <algorithm>

#include "collector/detectors/evidence/agreement.h"
#include "collector/graph/members.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Examination;

/// A record of the default group may be of a few ranks only, but every rank is a member.
bool have_stacks(const Examination& examination) {
  const auto& all = examination.standings;
  return std::all_of(all.begin(), all.end(), [](const graph::Standing& one) {
    return one.thread != nullptr && !one.thread->frames.empty();
  });
}

}  // namespace

model::RankSet members(const Examination& examination, const graph::GroupView& view) {
  const model::RankSet known = graph::members_of(view, examination.standings);
  const bool of_all =
      known.empty() || (view.group.name == "default_pg" && have_stacks(examination));
  return of_all ? model::all_ranks(examination.job) : known;
}

bool has_one_known_member(const Examination& examination, const std::string& group) {
  const graph::GroupView* view = examination.group(group);
  // A log names only members that wrote; with two ranks in the job, the other one is in it, too.
  const bool open = view != nullptr &&
                    (view->group.ranks.empty() || model::all_ranks(examination.job).size() == 2);
  return open && graph::members_of(*view, examination.standings).size() == 1 &&
         unobserved_ranks(examination).empty();
}

}  // namespace ddpdoctor::detectors
