// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/late_to_rendezvous.h"

#include "collector/detectors/evidence/agreement.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;
using graph::Standing;

/// Under torchrun, each rank is a client of the launcher's store.
bool has_launchers_store(const model::Process& process) {
  const auto told = process.environment.find("TORCHELASTIC_USE_AGENT_STORE");
  return told != process.environment.end() && told->second == "True";
}

bool is_in_init(const Standing& standing) {
  return standing.activity == Activity::kRendezvous && standing.thread != nullptr &&
         model::find_python_frame(*standing.thread, "init_process_group",
                                  "torch/distributed/distributed_c10d.py") != nullptr;
}

/// Other activities have detectors of their own, or there is no evidence that they do not end.
bool waits_for_something(const Standing& standing) {
  switch (standing.activity) {
    case Activity::kSleeping:
    case Activity::kLock:
    case Activity::kQueue:
    case Activity::kJoin:
      return standing.process != nullptr && standing.user.known();
    default:
      return false;
  }
}

}  // namespace

bool server_is_to_come(const graph::Examination& examination) {
  const Standing* first = examination.standing(0);
  return first != nullptr && first->process != nullptr && first->thread != nullptr &&
         !first->process->exit && first->activity != Activity::kRendezvous &&
         !first->waits_for_ranks() && first->user.known() && examination.job.collectives.empty() &&
         !has_launchers_store(*first->process);
}

model::RankSet late_to_rendezvous(const graph::Examination& examination) {
  if (!examination.job.collectives.empty() || !working_ranks(examination).empty()) {
    return {};
  }
  model::RankSet late;
  for (const Standing& standing : examination.standings) {
    if (waits_for_something(standing)) {
      late.insert(standing.rank);
    } else if (!is_in_init(standing)) {
      return {};
    }
  }
  return late.size() < examination.standings.size() ? late : model::RankSet{};
}

}  // namespace ddpdoctor::detectors
