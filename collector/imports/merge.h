// SPDX-License-Identifier: Apache-2.0
// Several captures of one job (one for each node, say) → one.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Adds what `part` knows to `whole`. Observations are joined by their order, newest with newest;
/// processes, calls and facts add up; where both know a value, `whole` keeps its own.
void merge(model::JobModel& whole, model::JobModel part);

}  // namespace ddpdoctor::imports
