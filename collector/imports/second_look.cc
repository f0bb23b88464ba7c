// SPDX-License-Identifier: Apache-2.0
// Both captures are from the same machine, so their times can be compared.
#include "collector/imports/second_look.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "collector/imports/merge_parts.h"
#include "collector/model/progress.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

using model::JobModel;
using model::Process;

/// Seconds; each capture computes clock ticks and boot time again, with small differences.
constexpr double kSameStart = 1;  // seconds
constexpr double kSameTime = 0.01;

bool is_one_process(const Process& a, const Process& b) {
  return a.pid == b.pid && a.host == b.host && a.start_time && b.start_time &&
         std::abs(*a.start_time - *b.start_time) <= kSameStart;
}

using Place = std::pair<std::string_view, pid_t>;

std::map<Place, const Process*> known_processes(const JobModel& job) {
  std::map<Place, const Process*> out;
  for (const model::Observation& look : job.observations) {
    for (const Process& process : look.processes) {
      if (process.pid > 0 && process.start_time && !process.host.empty()) {
        out[{process.host, process.pid}] = &process;
      }
    }
  }
  return out;
}

double time_of(const JobModel& job) {
  const model::Observation* newest = model::latest(job);
  return newest == nullptr ? 0 : newest->time;
}

std::set<std::string> machines(const JobModel& job) {
  std::set<std::string> out;
  for (const model::Observation& look : job.observations) {
    for (const Process& process : look.processes) {
      out.insert(process.host);
    }
  }
  return out;
}

/// The calls that the other capture does not have.
std::vector<model::CollectiveCall> only_here(std::vector<model::CollectiveCall> calls,
                                             const std::vector<model::CollectiveCall>& others) {
  using Key = std::tuple<std::string_view, model::Rank, std::int64_t, bool>;
  const auto key = [](const model::CollectiveCall& call) {
    return Key{call.group, call.rank, call.sequence, call.point_to_point};
  };
  std::set<Key> known;
  for (const model::CollectiveCall& call : others) {
    known.insert(key(call));
  }
  std::erase_if(calls,
                [&](const model::CollectiveCall& call) { return known.contains(key(call)); });
  return calls;
}

/// The part of the older capture about machines that the newer one did not see.
struct Away {
  std::vector<model::Observation> looks;
  std::set<pid_t> pids;
  model::RankSet ranks;
};

Away away_from(const std::set<std::string>& here, std::vector<model::Observation> looks) {
  Away away;
  std::vector<model::Rank> ranks;
  for (model::Observation& look : looks) {
    std::erase_if(look.processes,
                  [&here](const Process& process) { return here.contains(process.host); });
    for (const Process& process : look.processes) {
      away.pids.insert(process.pid);
      if (process.rank) {
        ranks.push_back(*process.rank);
      }
    }
    if (!look.processes.empty()) {
      away.looks.push_back(std::move(look));
    }
  }
  away.ranks = model::RankSet(std::move(ranks));
  return away;
}

bool is_away(const Away& away, const std::set<std::string>& here, const model::Fact& fact) {
  if (const auto host = fact.text("host")) {
    return !here.contains(*host);
  }
  return fact.rank ? away.ranks.contains(*fact.rank) : fact.pid && away.pids.contains(*fact.pid);
}

/// A single snapshot shows little about progress; with the one before it there are two. A rank that
/// was elsewhere before may have hung since: what the newer capture itself shows has priority.
void add_earlier_look(JobModel& newer, const std::set<std::string>& here,
                      const std::vector<model::Observation>& older) {
  if (newer.observations.size() != 1 || older.empty() ||
      time_of(newer) - older.back().time <= kSameTime) {
    return;
  }
  newer.observations.insert(newer.observations.begin(), older.back());
  std::erase_if(newer.observations.front().processes,
                [&here](const Process& process) { return !here.contains(process.host); });
  const model::Movement seen = model::movement(newer);
  if (newer.progress == model::Progress::kUnknown) {
    newer.progress = seen.progress;
    newer.seconds_without_progress = seen.seconds_without_progress;
  } else if (seen.progress == model::Progress::kMoving) {
    newer.observations.erase(newer.observations.begin());
  }
}

}  // namespace

bool show_one_process(const JobModel& a, const JobModel& b) {
  const auto shares_a_host = [&a](const std::string& host) {
    return std::find(a.hosts.begin(), a.hosts.end(), host) != a.hosts.end();
  };
  if (!a.hosts.empty() && !b.hosts.empty() &&
      std::none_of(b.hosts.begin(), b.hosts.end(), shares_a_host)) {
    // Hundreds of nodes are merged one by one: avoids comparing all processes each time.
    return false;
  }
  const auto known = known_processes(a);
  const auto others = known_processes(b);
  return std::any_of(others.begin(), others.end(), [&known](const auto& one) {
    const auto same = known.find(one.first);
    return same != known.end() && is_one_process(*same->second, *one.second);
  });
}

model::RankSet ranks_of_other_processes(const JobModel& a, const JobModel& b) {
  const model::Observation* before = model::latest(a);
  const model::Observation* now = model::latest(b);
  if (before == nullptr || now == nullptr) {
    return {};
  }
  std::map<model::Rank, const Process*> known;
  for (const Process& process : now->processes) {
    if (process.role == model::Role::kRank && process.rank && process.start_time) {
      known.emplace(*process.rank, &process);
    }
  }
  std::vector<model::Rank> ranks;
  for (const Process& process : before->processes) {
    const auto other = process.role == model::Role::kRank && process.rank && process.start_time
                           ? known.find(*process.rank)
                           : known.end();
    if (other != known.end() && !is_one_process(process, *other->second)) {
      ranks.push_back(*process.rank);
    }
  }
  return model::RankSet(std::move(ranks));
}

void join_looks(JobModel& whole, JobModel part) {
  if (time_of(part) > time_of(whole)) {
    std::swap(whole, part);
  }
  const bool again = time_of(whole) - time_of(part) <= kSameTime;  // a copy of the same snapshot
  const std::set<std::string> here = machines(whole);
  add_earlier_look(whole, here, part.observations);
  Away away = away_from(here, std::move(part.observations));
  const bool more_machines = !away.looks.empty();
  merge_observations(whole.observations, std::move(away.looks));
  merge_groups(whole.groups, std::move(part.groups));
  append(whole.collectives, only_here(std::move(part.collectives), whole.collectives));
  std::erase_if(part.facts, [&](const model::Fact& fact) { return !is_away(away, here, fact); });
  append(whole.facts, std::move(part.facts));
  for (model::Log& log : part.logs) {
    const auto same = [&log](const model::Log& other) {
      return other.rank == log.rank && other.text == log.text;
    };
    if (std::none_of(whole.logs.begin(), whole.logs.end(), same)) {
      whole.logs.push_back(std::move(log));
    }
  }
  merge_hosts(whole.hosts, std::move(part.hosts));
  merge_sources(whole.sources, std::move(part.sources));
  merge_sources(whole.framework_sources, std::move(part.framework_sources));
  if (!again) {
    whole.coverage.observed.emplace_back("an earlier snapshot of the same processes");
  }
  if (again || more_machines) {
    merge_coverage(whole.coverage, std::move(part.coverage));
    for (auto* sentences :
         {&whole.coverage.observed, &whole.coverage.unobserved, &whole.coverage.warnings}) {
      base::drop_repeats(*sentences);
    }
  }
}

}  // namespace ddpdoctor::imports
