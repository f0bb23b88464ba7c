// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/after_exception.h"

#include "collector/detectors/evidence/processes.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

bool lived_on(const model::JobModel& job, model::Rank rank) {
  const model::Process* process = model::rank_process(job, rank);
  if (process == nullptr) {
    return false;
  }
  const auto exit = exit_of(job, *process);
  return exit ? exit->status == 0 : alive(*process) && !job.ended;
}

bool waits_at_its_end(const graph::Standing* standing) {
  return standing != nullptr && standing->activity == graph::Activity::kExit;
}

}  // namespace ddpdoctor::detectors
