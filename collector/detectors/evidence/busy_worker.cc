// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/busy_worker.h"

#include <algorithm>

#include "collector/detectors/evidence/processes.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

bool its_worker_is_busy(const model::JobModel& job, const graph::Standing* standing) {
  if (standing == nullptr || standing->process == nullptr ||
      standing->activity != graph::Activity::kDataLoader) {
    return false;
  }
  const auto children = children_of(job, *standing->process);
  return std::any_of(children.begin(), children.end(), [](const model::Process* child) {
    const model::Thread* main = model::main_thread(*child);
    return child->role == model::Role::kDataLoaderWorker && alive(*child) && main != nullptr &&
           model::user_frame(*main) != nullptr;
  });
}

}  // namespace ddpdoctor::detectors
