// SPDX-License-Identifier: Apache-2.0
// A user's own lock file: a loop that waits until it is removed or can be created.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The user's innermost line is in such a loop, as far as its source is known.
bool polls_for_lock(const model::JobModel& job, const model::Thread& thread);

}  // namespace ddpdoctor::detectors
