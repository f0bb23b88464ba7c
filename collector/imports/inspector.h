// SPDX-License-Identifier: Apache-2.0
// Reads the files of NCCL's Inspector plugin (NCCL 2.28 or later, output format 4): one JSON object
// per completed call of a process, with communicator, rank, operation and number.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

bool is_inspector(std::string_view head, std::string_view path);
base::Result<model::JobModel> read_inspector(std::string_view bytes, const std::string& path);

}  // namespace ddpdoctor::imports
