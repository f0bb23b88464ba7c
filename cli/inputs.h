// SPDX-License-Identifier: Apache-2.0
// Reads the files given to `report` into one JobModel. A file's format is recognized by content,
// not by name.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::cli {

/// Contents that are in no file here.
struct FetchedInput {
  std::string name;
  std::string bytes;
};

/// Reads files and folders, and `logs` as text in any case. An unusable file is listed in the
/// coverage if another one is usable; fails if none is.
base::Result<model::JobModel> read_inputs(const std::vector<std::string>& paths,
                                          const std::vector<std::string>& logs = {},
                                          const std::vector<FetchedInput>& fetched = {});

}  // namespace ddpdoctor::cli
