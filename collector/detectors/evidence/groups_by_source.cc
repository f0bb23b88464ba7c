// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/groups_by_source.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "collector/detectors/evidence/agreement.h"

namespace ddpdoctor::detectors {
namespace {

/// The ranks that a new_group() is given, as written; empty for the ranks of the whole job.
std::string members_of(program::Node made_group) {
  const program::Node first = made_group.field(program::Field::kArguments).first_child();
  return !first || first.is(program::NodeKind::kKeywordArgument) ? std::string() : first.one_line();
}

/// The suite that a call is in.
program::Node suite_of(program::Node call) {
  program::Node at = call.parent();
  while (at && !at.is(program::NodeKind::kBlock) && !at.is(program::NodeKind::kModule)) {
    at = at.parent();
  }
  return at;
}

/// In one suite, equal expressions mean the same ranks.
bool have_same_members(program::Node one, program::Node other) {
  const std::string members = members_of(one);
  return members == members_of(other) && (members.empty() || suite_of(one) == suite_of(other));
}

}  // namespace

std::optional<TwoGroups> groups_by_source(const graph::Examination& examination) {
  if (!examination.history.empty() || !may_hang(examination) || examination.job.sources.empty()) {
    return std::nullopt;
  }
  std::vector<RanksInGroup> found;
  for (auto& [rank, call] : graph::launched_in_groups(examination.job, examination.standings)) {
    const auto known = std::find_if(found.begin(), found.end(), [&](const RanksInGroup& one) {
      return one.call.made_group == call.made_group &&
             one.call.callers.front() == call.callers.front();
    });
    if (known != found.end()) {
      known->ranks.insert(rank);
    } else {
      found.push_back({.ranks = model::RankSet{rank}, .call = std::move(call)});
    }
  }
  if (found.size() != 2 || found[0].call.made_group == found[1].call.made_group ||
      !have_same_members(found[0].call.made_group, found[1].call.made_group)) {
    return std::nullopt;
  }
  return TwoGroups{.first = std::move(found[0]), .second = std::move(found[1])};
}

}  // namespace ddpdoctor::detectors
