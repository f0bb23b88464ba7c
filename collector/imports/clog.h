// SPDX-License-Identifier: Apache-2.0
// The log that torchcomms' ClogHook writes on each rank: signatures of calls, and when each call
// was enqueued, started and completed. Version 1.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

bool is_clog(std::string_view head, std::string_view path);
base::Result<model::JobModel> read_clog(std::string_view bytes, const std::string& path);

}  // namespace ddpdoctor::imports
