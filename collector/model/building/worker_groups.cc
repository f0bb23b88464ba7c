// SPDX-License-Identifier: Apache-2.0
// The class of a worker is in its process title, "ray::Trainer.train". Workers of one class are
// unchanged if two of them have the same rank.
#include "collector/model/building/worker_groups.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"
#include "collector/model/rank_set.h"

namespace ddpdoctor::model {
namespace {

constexpr std::size_t kMostNamed = 4;
constexpr std::size_t kLongestName = 64;

std::string class_of(const Process& process) {
  constexpr std::string_view kTitle = "ray::";
  if (process.command.empty() || !process.command.front().starts_with(kTitle)) {
    return {};
  }
  const std::string_view title = std::string_view(process.command.front()).substr(kTitle.size());
  return std::string(title.substr(0, std::min(title.find_first_of(". "), kLongestName)));
}

struct Group {
  RankSet ranks;
  pid_t first = 0;
  bool asked = false;
};

std::map<std::string, Group> groups_of(const Observation& now, pid_t asked) {
  std::map<std::string, Group> out;
  for (const Process& process : now.processes) {
    const std::string name = process.rank ? class_of(process) : std::string();
    if (process.role != Role::kRank || name.empty()) {
      continue;
    }
    Group& group = out[name];
    group.first = group.first == 0 ? process.pid : std::min(group.first, process.pid);
    group.asked = group.asked || process.pid == asked;
    group.ranks.insert(*process.rank);
  }
  return out;
}

bool share_a_rank(const std::map<std::string, Group>& groups) {
  RankSet seen;
  for (const auto& [name, group] : groups) {
    if (!seen.common(group.ranks).empty()) {
      return true;
    }
    seen = seen.united(group.ranks);
  }
  return false;
}

}  // namespace

std::optional<std::string> keep_one_worker_group(JobModel& job, pid_t asked) {
  const Observation* now = latest(job);
  const auto groups = now == nullptr ? std::map<std::string, Group>() : groups_of(*now, asked);
  if (!share_a_rank(groups)) {
    return std::nullopt;
  }
  const auto kept =
      std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.second.asked, a.second.ranks.size(), -a.second.first) <
               std::tuple(b.second.asked, b.second.ranks.size(), -b.second.first);
      });
  std::string others;
  std::size_t named = 0;
  for (const auto& [name, group] : groups) {
    if (name != kept->first && named++ < kMostNamed) {
      others += fmt::format("{}`ddpdoctor attach {}` reports {}", others.empty() ? "" : ", ",
                            group.first, base::printable(name));
    }
  }
  for (Observation& look : job.observations) {
    for (Process& process : look.processes) {
      const std::string name = process.role == Role::kRank ? class_of(process) : std::string();
      if (groups.contains(name) && name != kept->first) {
        process.role = Role::kOther;
        process.rank.reset();
      }
    }
  }
  return fmt::format(
      "{} groups of Ray workers count their ranks from 0; this is about the {} of {}; {}",
      groups.size(), kept->second.ranks.size() == 1 ? "rank" : "ranks",
      base::printable(kept->first), others);
}

}  // namespace ddpdoctor::model
