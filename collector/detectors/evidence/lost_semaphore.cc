// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/lost_semaphore.h"

#include <algorithm>
#include <vector>

#include "collector/graph/knots.h"

namespace ddpdoctor::detectors {

bool is_lost_by_workers(const WaitingCircle& circle) {
  return circle.lost &&
         std::all_of(circle.members.begin(), circle.members.end(), [](const BlockedThread* member) {
           return member->process->role == model::Role::kDataLoaderWorker;
         });
}

std::set<pid_t> waiting_for_lost_semaphore(const graph::Examination& examination) {
  std::set<pid_t> out;
  const BlockedThreads blocked = blocked_threads(examination);
  for (const std::vector<std::size_t>& knot : graph::knots(blocked.nodes)) {
    const auto circle = circle_of(blocked, knot);
    if (!circle || !is_lost_by_workers(*circle)) {
      continue;
    }
    for (const BlockedThread* member : circle->members) {
      out.insert(member->process->pid);
    }
  }
  return out;
}

}  // namespace ddpdoctor::detectors
