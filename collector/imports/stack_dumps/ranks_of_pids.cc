// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/ranks_of_pids.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestLine = 160;
constexpr std::int64_t kLeastPid = 100;  // smaller numbers may count anything

using RanksOfPids = std::map<std::int64_t, std::set<model::Rank>>;

/// The ranks in lines with one of these pids.
void add_told(const std::vector<std::string_view>& lines, RanksOfPids& ranks) {
  for (const std::string_view line : lines) {
    const auto rank = line.size() <= kLongestLine ? rank_in_text(line) : std::nullopt;
    for (const std::int64_t number : rank ? numbers_in(line) : std::vector<std::int64_t>()) {
      if (const auto pid = ranks.find(number); pid != ranks.end()) {
        pid->second.insert(*rank);
      }
    }
  }
}

/// A pid has several ranks, or two pids have the same: such lines count something else.
bool contradict(const RanksOfPids& ranks) {
  std::set<model::Rank> given;
  return std::any_of(ranks.begin(), ranks.end(), [&given](const auto& one) {
    return one.second.size() > 1 ||
           (one.second.size() == 1 && !given.insert(*one.second.begin()).second);
  });
}

bool lacks_rank(const model::Process& process) {
  return process.role == model::Role::kRank && !process.rank && process.pid >= kLeastPid &&
         model::was_dumped(process);
}

}  // namespace

void take_ranks_of_logs(model::JobModel& job) {
  RanksOfPids ranks;
  std::set<pid_t> twice;  // on two machines
  for (const model::Process& process : job.observations.back().processes) {
    if (lacks_rank(process) && !ranks.try_emplace(process.pid).second) {
      twice.insert(process.pid);
    }
  }
  for (const model::Log& log : job.logs) {
    if (!ranks.empty()) {
      add_told(base::split(log.text, '\n'), ranks);
    }
  }
  if (contradict(ranks) || !twice.empty()) {
    return;
  }
  for (model::Observation& observation : job.observations) {
    for (model::Process& process : observation.processes) {
      const auto told = ranks.find(process.pid);
      if (lacks_rank(process) && told != ranks.end() && told->second.size() == 1) {
        process.rank = *told->second.begin();
      }
    }
  }
}

void give_ranks_of_pids(const std::vector<std::string_view>& lines, std::vector<StackDump>& dumps) {
  RanksOfPids ranks;
  for (const StackDump& dump : dumps) {
    if (dump.process.pid >= kLeastPid && !dump.process.rank) {
      ranks[dump.process.pid];
    }
  }
  if (ranks.empty()) {
    return;
  }
  add_told(lines, ranks);
  if (contradict(ranks)) {
    return;
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
