// SPDX-License-Identifier: Apache-2.0
// The files that `report` is given → one JobModel. What a file is, its content says, not its name.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::cli {

/// Reads files and folders of files, and `logs` as text whatever they hold. One that cannot be used
/// is told in coverage when another can; an error when none can.
base::Result<model::JobModel> read_inputs(const std::vector<std::string>& paths,
                                          const std::vector<std::string>& logs = {});

}  // namespace ddpdoctor::cli
