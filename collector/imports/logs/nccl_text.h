// SPDX-License-Identifier: Apache-2.0
// What NCCL says of a process in its log: the address at which others reach it, as facts
// "nccl-interface", and as facts "nccl-failure" a CUDA call of its own that failed, or its first
// warning if it then returned an error of its own ("code": internal, invalid argument or usage).
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

void read_nccl_text(std::string_view log, model::JobModel& job);

}  // namespace ddpdoctor::imports
