// SPDX-License-Identifier: Apache-2.0
// py-spy names "train.py" what it found below sys.path. Where that file lies here is looked for.
#pragma once

#include <span>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Files that a dump names in short are looked for in `folders` and beside the scripts of command
/// lines. One is found when each line that a dump names in it lies in a function of that name;
/// frames then name it in full. Reads Python files of at most 2 MB.
void find_short_sources(model::JobModel& job, std::span<const std::string> folders);

}  // namespace ddpdoctor::imports
