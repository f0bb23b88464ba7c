// SPDX-License-Identifier: Apache-2.0
// Lock files that a log says a process waits for.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The locks that huggingface_hub ("still waiting to acquire lock on …") and filelock ("Lock … not
/// acquired on …") waited for until the end of a log: nothing but a traceback follows.
std::optional<Finding> waits_for_told_locks(const model::JobModel& job, std::string_view kind);

}  // namespace ddpdoctor::detectors
