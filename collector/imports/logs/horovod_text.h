// SPDX-License-Identifier: Apache-2.0
// What Horovod's stall inspector writes: the ranks that have not submitted a tensor which others
// wait with.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

void read_horovod_text(std::string_view log, model::JobModel& job);

}  // namespace ddpdoctor::imports
