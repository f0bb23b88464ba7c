// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/unlike_variables.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "collector/model/environment.h"
#include "collector/model/secrets.h"

namespace ddpdoctor::model {
namespace {

constexpr std::size_t kMostVariables = 64;

using Environment = std::map<std::string, std::string>;

std::map<Rank, const Environment*> environments(const sources::JobTree& tree,
                                                const std::vector<Process>& processes) {
  std::map<Rank, const Environment*> out;
  for (std::size_t i = 0; i < std::min(tree.processes.size(), processes.size()); ++i) {
    const Environment& environment = tree.processes[i].row.environment;
    if (processes[i].role == Role::kRank && processes[i].rank && !environment.empty()) {
      out[*processes[i].rank] = &environment;
    }
  }
  return out;
}

}  // namespace

std::vector<Fact> unlike_variables(const sources::JobTree& tree,
                                   const std::vector<Process>& processes) {
  const auto all = environments(tree, processes);
  std::set<std::string> names;
  for (const auto& [rank, environment] : all) {
    for (const auto& [name, value] : *environment) {
      if (!describes_job(name) && !is_secret(name)) {
        names.insert(name);
      }
    }
  }
  std::vector<Fact> out;
  for (const std::string& name : names) {
    std::map<std::string, RankSet> sides;
    RankSet unset;
    for (const auto& [rank, environment] : all) {
      const auto found = environment->find(name);
      (found == environment->end() ? unset : sides[found->second]).insert(rank);
    }
    if (sides.size() + (unset.empty() ? 0 : 1) < 2) {
      continue;
    }
    std::vector<std::string> ranges;
    for (const auto& [value, ranks] : sides) {
      ranges.push_back(ranks.ranges());
    }
    std::sort(ranges.begin(), ranges.end());  // sorted here because their order follows the values
    out.push_back({.rank = std::nullopt,
                   .pid = std::nullopt,
                   .kind = "variable-unlike",
                   .fields = {{"name", name}, {"sides", ranges}, {"unset", unset.ranges()}}});
    if (out.size() == kMostVariables) {
      break;
    }
  }
  return out;
}

}  // namespace ddpdoctor::model
