// SPDX-License-Identifier: Apache-2.0
// Where each GPU is in the setup of an NCCL communicator, as facts "nccl-setup". The setup is one
// sequence per rank: the last line of each shows the step that did not finish.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// One fact for each GPU of each process that began a setup: "step" and "text" of its last line,
/// "via" for transports, "group_rank" and "size" of the communicator, "finished", "lazy", "failed",
/// "closed".
void read_nccl_setup(std::string_view log, model::JobModel& job);

}  // namespace ddpdoctor::imports
