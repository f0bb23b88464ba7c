// SPDX-License-Identifier: Apache-2.0
// Collectives that NCCL writes with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=COLL, as calls of the
// job.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Only calls of communicators of all ranks, from their first call on: their numbers are known. The
/// lines are written at the launch; what became of it is unknown.
void read_nccl_calls(std::string_view log, model::JobModel& job);

}  // namespace ddpdoctor::imports
