// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/lost_semaphore.h"

#include <algorithm>
#include <vector>

#include "collector/graph/knots.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

bool is_lost_by_workers(const model::JobModel& job, const WaitingCircle& circle) {
  const auto of_rank = [&job](const BlockedThread* member) {
    const model::Process* const parent = model::process(job, member->process->ppid);
    return member->process->role == model::Role::kDataLoaderWorker && parent != nullptr &&
           parent->role == model::Role::kRank;
  };
  return circle.lost && std::all_of(circle.members.begin(), circle.members.end(), of_rank);
}

std::set<pid_t> waiting_for_lost_semaphore(const graph::Examination& examination) {
  std::set<pid_t> out;
  const BlockedThreads blocked = blocked_threads(examination);
  for (const std::vector<std::size_t>& knot : graph::knots(blocked.nodes)) {
    const auto circle = circle_of(blocked, knot);
    if (!circle || !is_lost_by_workers(examination.job, *circle)) {
      continue;
    }
    for (const BlockedThread* member : circle->members) {
      out.insert(member->process->pid);
    }
  }
  return out;
}

}  // namespace ddpdoctor::detectors
