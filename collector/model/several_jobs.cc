// SPDX-License-Identifier: Apache-2.0
// Two jobs below one command, such as a sweep or two trainings in one script. Their ranks have the
// same numbers, and their calls must not be compared with each other.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

std::string setting(const Process& process, const char* name) {
  const auto value = process.environment.find(name);
  return value == process.environment.end() ? std::string() : value->second;
}

/// The rendezvous address of a process, or its parent.
std::string job_of(const Process& process) {
  const std::string port = setting(process, "MASTER_PORT");
  return port.empty() ? "child of " + std::to_string(process.ppid)
                      : setting(process, "MASTER_ADDR") + ":" + port;
}

struct OneJob {
  RankSet ranks;
  std::string world_size;  // world size given to its ranks; empty = none
  bool consistent = true;  // each rank occurs once, and all got the same settings

  void add(const Process& process) {
    const std::string told = setting(process, "WORLD_SIZE");
    consistent =
        consistent && !ranks.contains(*process.rank) && (ranks.empty() || told == world_size);
    ranks.insert(*process.rank);
    world_size = told;
  }

  /// It has ranks 0 to N-1: no member is in the wrong job because of a wrong setting.
  [[nodiscard]] bool is_whole() const {
    return consistent && ranks.front() == 0 &&
           ranks.values().back() + 1 == static_cast<Rank>(ranks.size()) &&
           (world_size.empty() || world_size == std::to_string(ranks.size()));
  }
};

using Jobs = std::map<std::string, OneJob>;

bool are_whole(const Jobs& jobs) {
  return std::all_of(jobs.begin(), jobs.end(),
                     [](const auto& one) { return one.second.is_whole(); });
}

/// The jobs have different rendezvous addresses and sizes, and some rank is in two of them: not one
/// wrong setting, even if some ranks have ended.
bool share_only_numbers(const Jobs& jobs) {
  std::set<std::string> sizes;
  RankSet seen;
  bool shared = false;
  for (const auto& [key, one] : jobs) {
    if (!one.consistent || one.world_size.empty() || !sizes.insert(one.world_size).second) {
      return false;
    }
    shared = shared || !seen.common(one.ranks).empty();
    seen = seen.united(one.ranks);
  }
  return shared;
}

}  // namespace

bool are_several_jobs(const JobModel& job) {
  Jobs jobs;
  const Observation* now = latest(job);
  for (std::size_t i = 0; now != nullptr && i < now->processes.size(); ++i) {
    const Process& process = now->processes[i];
    if (process.role == Role::kRank && process.rank) {
      jobs[job_of(process)].add(process);
    }
  }
  return jobs.size() > 1 && (are_whole(jobs) || share_only_numbers(jobs));
}

}  // namespace ddpdoctor::model
