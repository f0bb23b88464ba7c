// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/ranks_of_pids.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestLine = 160;
constexpr std::int64_t kLeastPid = 100;  // smaller numbers may count anything

}  // namespace

void give_ranks_of_pids(const std::vector<std::string_view>& lines, std::vector<StackDump>& dumps) {
  std::map<std::int64_t, std::set<model::Rank>> ranks;
  for (const StackDump& dump : dumps) {
    if (dump.process.pid >= kLeastPid && !dump.process.rank) {
      ranks[dump.process.pid];
    }
  }
  if (ranks.empty()) {
    return;
  }
  for (const std::string_view line : lines) {
    const auto rank = line.size() <= kLongestLine ? rank_in_text(line) : std::nullopt;
    for (const std::int64_t number : rank ? numbers_in(line) : std::vector<std::int64_t>()) {
      if (const auto pid = ranks.find(number); pid != ranks.end()) {
        pid->second.insert(*rank);
      }
    }
  }
  std::set<model::Rank> given;
  for (const auto& [pid, told] : ranks) {
    if (told.size() > 1 || (told.size() == 1 && !given.insert(*told.begin()).second)) {
      return;
    }
  }
  for (StackDump& dump : dumps) {
    const auto told = ranks.find(dump.process.pid);
    if (!dump.process.rank && told != ranks.end() && told->second.size() == 1) {
      dump.process.rank = *told->second.begin();
    }
  }
}

std::optional<model::Rank> rank_of_pid(const std::vector<std::string_view>& lines,
                                       std::int64_t pid) {
  std::set<model::Rank> ranks;
  for (const std::string_view line : lines) {
    const auto rank =
        pid >= kLeastPid && line.size() <= kLongestLine ? rank_in_text(line) : std::nullopt;
    const auto numbers = rank ? numbers_in(line) : std::vector<std::int64_t>();
    if (std::find(numbers.begin(), numbers.end(), pid) != numbers.end()) {
      ranks.insert(*rank);
    }
  }
  return ranks.size() == 1 ? std::optional(*ranks.begin()) : std::nullopt;
}

}  // namespace ddpdoctor::imports
