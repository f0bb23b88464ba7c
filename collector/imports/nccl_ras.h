// SPDX-License-Identifier: Apache-2.0
// Reads the answers of NCCL's RAS subsystem (ncclras, port 28028), as text and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

bool is_ras_json(std::string_view head, std::string_view path);
base::Result<model::JobModel> read_ras_json(std::string_view bytes, const std::string& path);

bool is_ras_text(std::string_view head, std::string_view path);
/// Reads RAS answers within a text; of several, the newest.
void read_ras_text(std::string_view text, model::JobModel& job);

}  // namespace ddpdoctor::imports
