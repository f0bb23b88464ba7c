// SPDX-License-Identifier: Apache-2.0
// What NCCL's RAS subsystem (ncclras, port 28028) answers, as text and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

bool is_ras_json(std::string_view head, std::string_view path);
base::Result<model::JobModel> read_ras_json(std::string_view bytes, const std::string& path);

bool is_ras_text(std::string_view head, std::string_view path);
/// Answers of RAS within a text; several are looks one after the other.
void read_ras_text(std::string_view text, model::JobModel& job);

}  // namespace ddpdoctor::imports
