// SPDX-License-Identifier: Apache-2.0
// Reads the warnings of Horovod's stall inspector: ranks that have not submitted a tensor that
// other ranks have submitted.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// The first line of such a warning.
bool tells_of_stall(std::string_view line);

void read_horovod_text(std::string_view log, model::JobModel& job);

}  // namespace ddpdoctor::imports
