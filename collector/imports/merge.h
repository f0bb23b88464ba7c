// SPDX-License-Identifier: Apache-2.0
// Merges several captures of one job (for example, one per node).
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Adds the data of `part` to `whole`. Observations are matched in order, newest with newest;
/// processes, calls and facts are added; if both have a value, `whole` keeps its own.
void merge(model::JobModel& whole, model::JobModel part);

}  // namespace ddpdoctor::imports
