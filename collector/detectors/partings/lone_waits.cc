// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/lone_waits.h"

#include <algorithm>

#include "collector/detectors/partings/group_members.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

bool waits_alone(const graph::Examination& examination, const graph::Standing& standing) {
  return standing.process == nullptr && standing.waits_for_ranks() && standing.call &&
         standing.call->sequence && !standing.callers.empty() &&
         has_one_known_member(examination, standing.call->group);
}

Side side_of(const graph::Examination& examination, const graph::Standing& standing) {
  return {.ranks = {standing.rank},
          .operation = standing.call->operation,
          .path = standing.callers,
          .standing = &standing,
          .call = examination.history.at(standing.call->group, standing.rank,
                                         *standing.call->sequence)};
}

}  // namespace

std::optional<Parting> lone_waits(const graph::Examination& examination) {
  const std::vector<graph::Standing>& both = examination.standings;
  if (both.size() != 2 || model::all_ranks(examination.job).size() != 2 ||
      !std::all_of(both.begin(), both.end(),
                   [&](const auto& one) { return waits_alone(examination, one); }) ||
      both[0].call->group == both[1].call->group) {
    return std::nullopt;
  }
  Parting parting;
  parting.group = both[1].call->group;
  parting.sequence = both[1].call->sequence;
  parting.recorded = true;
  parting.rest = side_of(examination, both[1]);
  parting.odd = side_of(examination, both[0]);
  parting.tie = true;
  return parting;
}

}  // namespace ddpdoctor::detectors
