// SPDX-License-Identifier: Apache-2.0
// The number of ranks, as frameworks print it when they start.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Adds the fact model::kToldWorld if all such lines of the log agree.
void read_told_world(std::string_view log, model::JobModel& job);

}  // namespace ddpdoctor::imports
