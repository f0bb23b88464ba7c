// SPDX-License-Identifier: Apache-2.0
// Tells the user's source at which lines the recorded job called collectives.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// Only complete records show that a line called none.
void mark_recorded_lines(const model::JobModel& job);

}  // namespace ddpdoctor::graph
