// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/other_jobs.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "collector/model/building/child_ends.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

using sources::Recording;

/// Key of recordings that may be one job: the launcher (if each job has its own), the world size,
/// and whether all are running or all have exited.
using Key = std::tuple<pid_t, int, bool>;

struct Neighbours {
  std::vector<const Recording*> members;
  std::map<Rank, int> times;  // number of processes per rank
  bool failed = false;
  double last_end = 0;

  /// Number of complete jobs: each of ranks 0 to N-1 occurs equally often. 0 = not complete.
  [[nodiscard]] int whole_jobs(int world_size) const {
    const bool all = static_cast<int>(times.size()) == world_size && times.begin()->first == 0 &&
                     times.rbegin()->first == world_size - 1;
    const int each = times.begin()->second;
    const bool alike =
        std::all_of(times.begin(), times.end(), [each](const auto& t) { return t.second == each; });
    return all && alike ? each : 0;
  }
};

using Groups = std::map<Key, Neighbours>;

class Parting {
 public:
  Parting(const JobModel& job, const std::vector<Recording>& recordings)
      : recordings_(recordings), ends_(child_ends(recordings)) {
    const Observation* now = latest(job);
    for (std::size_t i = 0; now != nullptr && i < now->processes.size(); ++i) {
      const Process& process = now->processes[i];
      if (!process.exit && process.state != 'Z' && process.state != 'X') {
        alive_.insert(process.pid);
      }
    }
  }

  /// Empty if this grouping contains an incomplete job.
  [[nodiscard]] Groups whole(bool by_launcher, bool by_life) const {
    Groups groups;
    for (const Recording& recording : recordings_) {
      const bool took_part = !recording.calls.empty() || !recording.groups.empty();
      if (!recording.rank || !took_part || recording.forked || recording.superseded) {
        continue;
      }
      if (!recording.world_size) {
        return {};
      }
      const bool alive = alive_.contains(recording.pid);
      Neighbours& group =
          groups[{by_launcher ? recording.ppid : 0, *recording.world_size, by_life && alive}];
      group.members.push_back(&recording);
      ++group.times[*recording.rank];
      group.failed = group.failed || (!alive && !ended_well(recording));
      group.last_end = std::max(group.last_end, recording.exit ? recording.exit->time : 0);
    }
    const bool all = std::all_of(groups.begin(), groups.end(), [](const auto& entry) {
      return entry.second.whole_jobs(std::get<1>(entry.first)) > 0;
    });
    return all ? groups : Groups{};
  }

  [[nodiscard]] bool is_alive(const Neighbours& group) const {
    return std::any_of(group.members.begin(), group.members.end(),
                       [this](const Recording* one) { return alive_.contains(one->pid); });
  }

 private:
  [[nodiscard]] bool ended_well(const Recording& recording) const {
    if (const auto end = ends_.find(recording.pid); end != ends_.end()) {
      return end->second.status == 0;
    }
    return recording.exit && recording.exit->kind != "abort" && recording.exit->value == 0;
  }

  const std::vector<Recording>& recordings_;
  std::map<pid_t, Exit> ends_;
  std::set<pid_t> alive_;
};

/// The finest grouping that consists of several complete jobs.
Groups parted(const Parting& parting) {
  for (const auto& [by_launcher, by_life] :
       {std::pair(true, false), std::pair(false, false), std::pair(false, true)}) {
    Groups groups = parting.whole(by_launcher, by_life);
    if (groups.size() > 1) {
      return groups;
    }
  }
  return {};
}

/// Sort key: the job that is diagnosed comes first.
std::tuple<bool, bool, double> importance(const Parting& parting, const Neighbours& group) {
  return {!parting.is_alive(group), !group.failed, -group.last_end};
}

/// Adds the processes that ranks of another job started.
std::set<pid_t> with_children(const std::vector<Recording>& recordings, std::set<pid_t> pids) {
  for (bool more = true; more;) {
    more = false;
    for (const Recording& recording : recordings) {
      const bool below = pids.contains(recording.ppid);
      more = (below && pids.insert(recording.pid).second) || more;
    }
  }
  return pids;
}

}  // namespace

std::set<pid_t> of_other_jobs(const JobModel& job, const std::vector<Recording>& recordings) {
  const Parting parting(job, recordings);
  const Groups groups = parted(parting);
  const auto told =
      std::min_element(groups.begin(), groups.end(), [&parting](const auto& a, const auto& b) {
        return importance(parting, a.second) < importance(parting, b.second);
      });
  std::set<pid_t> others;
  for (auto group = groups.begin(); group != groups.end(); ++group) {
    // Two running jobs both stay: are_several_jobs() reports them.
    if (group != told && !parting.is_alive(group->second)) {
      for (const Recording* member : group->second.members) {
        others.insert(member->pid);
      }
    }
  }
  return with_children(recordings, std::move(others));
}

}  // namespace ddpdoctor::model
