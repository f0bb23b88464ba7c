// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/vanished.h"

#include <algorithm>
#include <set>
#include <utility>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// It polls in a loop: for a store key, a file, or a flag of another rank.
bool polls_for_something(const model::JobModel& job, const graph::Standing& standing) {
  return standing.activity == graph::Activity::kSleeping && !standing.on_cpu &&
         standing.thread != nullptr && polls(job, *standing.thread);
}

/// Torch groups exist in memory or records, and all remaining ranks wait or poll.
bool all_wait_past_the_start(const graph::Examination& examination) {
  return !examination.job.groups.empty() &&
         std::all_of(examination.standings.begin(), examination.standings.end(),
                     [&examination](const graph::Standing& standing) {
                       return standing.activity == graph::Activity::kAbsent ||
                              standing.activity == graph::Activity::kStore ||
                              polls_for_something(examination.job, standing);
                     });
}

/// A rank waits in a group that includes it, or in an unknown group.
bool is_waited_for(const graph::Examination& examination, model::Rank rank) {
  return std::any_of(examination.standings.begin(), examination.standings.end(),
                     [&](const graph::Standing& standing) {
                       const graph::GroupView* group =
                           standing.call ? examination.group(standing.call->group) : nullptr;
                       const bool stranger = group != nullptr && !group->group.ranks.empty() &&
                                             !model::RankSet(group->group.ranks).contains(rank);
                       return standing.waits_for_ranks() && !stranger;
                     });
}

/// Two children of one launcher have one rank: the rendezvous counted one of them for the rank that
/// has no process.
bool is_claimed_twice(const model::JobModel& job) {
  std::set<std::pair<pid_t, model::Rank>> claims;
  for (const model::Process* process : processes(job)) {
    if (process->role == model::Role::kRank && process->rank && alive(*process) &&
        !claims.emplace(process->ppid, *process->rank).second) {
      return true;
    }
  }
  return false;
}

}  // namespace

model::RankSet vanished(const graph::Examination& examination) {
  const bool joined = all_wait_past_the_start(examination) ||
                      std::any_of(examination.standings.begin(), examination.standings.end(),
                                  [](const graph::Standing& standing) {
                                    return standing.activity == graph::Activity::kCollective ||
                                           standing.activity == graph::Activity::kNewGroup ||
                                           standing.activity == graph::Activity::kDdpBackward ||
                                           standing.activity == graph::Activity::kDdpForward;
                                  });
  if (!joined || is_rendezvous_open(examination) || !examination.still() ||
      is_claimed_twice(examination.job)) {
    return {};
  }
  return ranks_where(examination, [&examination](const graph::Standing& standing) {
    return standing.activity == graph::Activity::kAbsent &&
           (all_wait_past_the_start(examination) || is_waited_for(examination, standing.rank));
  });
}

model::RankSet gone_under_torchrun(const graph::Examination& examination) {
  return torchrun_watches(examination.job) ? vanished(examination) : model::RankSet{};
}

bool is_rendezvous_open(const graph::Examination& examination) {
  const auto& standings = examination.standings;
  const auto& groups = examination.job.groups;
  const auto& calls = examination.job.collectives;
  return std::any_of(groups.begin(), groups.end(), model::is_of_nccl) &&
         std::any_of(standings.begin(), standings.end(),
                     [](const graph::Standing& standing) {
                       return standing.activity == graph::Activity::kRendezvous;
                     }) &&
         std::none_of(calls.begin(), calls.end(), [](const model::CollectiveCall& call) {
           return call.state == model::CallState::kCompleted;
         });
}

bool looked_at_all(const model::JobModel& job) {
  const auto seen = processes(job);
  return !job.coverage.observed.empty() ||
         std::any_of(seen.begin(), seen.end(), [](const model::Process* process) {
           return process->role == model::Role::kLauncher;
         });
}

}  // namespace ddpdoctor::detectors
