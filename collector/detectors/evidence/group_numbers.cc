// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/group_numbers.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/graph/blocked_call.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// '2' → 2
std::optional<int> number_in(std::string_view quoted_name) {
  constexpr std::string_view kQuotes = "'\"";
  while (!quoted_name.empty() && kQuotes.find(quoted_name.front()) != std::string_view::npos) {
    quoted_name.remove_prefix(1);
  }
  while (!quoted_name.empty() && kQuotes.find(quoted_name.back()) != std::string_view::npos) {
    quoted_name.remove_suffix(1);
  }
  int number = 0;
  const char* const end = quoted_name.data() + quoted_name.size();
  const auto [stop, error] = std::from_chars(quoted_name.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

std::optional<GroupMade> made_by(const graph::Standing& standing) {
  const model::Frame* helper =
      standing.thread == nullptr || standing.activity != graph::Activity::kNewGroup
          ? nullptr
          : model::find_python_frame(*standing.thread, "_new_process_group_helper");
  const auto number = helper == nullptr ? std::nullopt : number_in(local_of(*helper, "group_name"));
  if (!number) {
    return std::nullopt;
  }
  return GroupMade{
      .number = *number, .members = local_of(*helper, "global_ranks_in_group"), .by = &standing};
}

bool are_one_group(const GroupMade& a, const GroupMade& b) {
  return !a.members.empty() && a.members == b.members && a.by->user.known() &&
         graph::same_line(a.by->user, b.by->user);
}

std::map<int, std::vector<GroupMade>> made_groups(const graph::Examination& examination) {
  std::map<int, std::vector<GroupMade>> by_number;
  for (const graph::Standing& standing : examination.standings) {
    if (const auto made = made_by(standing)) {
      by_number[made->number].push_back(*made);
    }
  }
  return by_number;
}

}  // namespace

std::optional<GroupNumbers> group_numbers(const graph::Examination& examination) {
  const std::map<int, std::vector<GroupMade>> by_number = made_groups(examination);
  if (by_number.size() < 2) {
    return std::nullopt;
  }
  GroupNumbers numbers;
  const GroupMade& first = by_number.begin()->second.front();
  numbers.one_group = true;
  for (const auto& [number, all] : by_number) {
    for (const GroupMade& made : all) {
      (number == by_number.rbegin()->first ? numbers.ahead : numbers.behind).insert(made.by->rank);
      numbers.one_group = numbers.one_group && are_one_group(first, made);
    }
  }
  const model::ProcessGroup* const taken =
      model::group(examination.job, std::to_string(first.number));
  if (taken != nullptr && !taken->ranks.empty() &&
      model::RankSet(taken->ranks).minus(numbers.ahead).empty()) {
    numbers.unknown_behind = taken;
  }
  return numbers;
}

std::vector<GroupMade> groups_of_one_number(const graph::Examination& examination) {
  for (const auto& [number, all] : made_groups(examination)) {
    std::vector<GroupMade> different;
    for (const GroupMade& made : all) {
      const bool is_new =
          std::none_of(different.begin(), different.end(),
                       [&made](const auto& one) { return one.members == made.members; });
      if (is_new && !made.members.empty() && different.size() < 2) {
        different.push_back(made);
      }
    }
    if (different.size() > 1) {
      return different;
    }
  }
  return {};
}

std::optional<SharedName> shared_name(const graph::Examination& examination) {
  for (const model::ProcessGroup& other : examination.job.groups) {
    const std::string_view name = model::name_in_id(other.id);
    const model::ProcessGroup* one =
        name == other.id ? nullptr : model::group(examination.job, name);
    if (one == nullptr || one->ranks.size() < 2 || other.ranks.size() < 2 ||
        one->ranks == other.ranks) {
      continue;
    }
    const model::RankSet stuck_there = ranks_where(examination, [&](const auto& standing) {
      return standing.waits_for_ranks() && standing.call &&
             (standing.call->group == one->id || standing.call->group == other.id);
    });
    if (!stuck_there.empty()) {
      return SharedName{.one = one, .other = &other};
    }
  }
  return std::nullopt;
}

bool is_default_group(const model::JobModel& job, const SharedName& shared) {
  const std::string world = graph::world_group(job);
  return shared.one->id == world || shared.other->id == world;
}

model::RankSet makers_of_their_own(const graph::Examination& examination,
                                   const std::vector<GroupMade>& groups) {
  model::RankSet makers;
  std::set<model::Rank> members;
  for (const GroupMade& made : groups) {
    const std::string_view text = made.members;
    for (std::size_t at = 0; at < text.size();) {
      int rank = 0;
      const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
      at = error == std::errc() ? static_cast<std::size_t>(end - text.data()) : at + 1;
      if (error == std::errc() && !members.insert(rank).second) {
        return {};
      }
    }
  }
  for (const graph::Standing& standing : examination.standings) {
    const bool makes =
        standing.activity == graph::Activity::kNewGroup && members.contains(standing.rank);
    if (makes) {
      makers.insert(standing.rank);
    }
  }
  return makers;
}

}  // namespace ddpdoctor::detectors
