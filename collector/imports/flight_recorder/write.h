// SPDX-License-Identifier: Apache-2.0
// JobModel → flight-recorder dumps as torch writes them, one pickle for each rank: torchfrtrace
// reads them, and so do we. torch's own dumps of gloo jobs it cannot read: they name no groups.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// One file of a folder.
struct DumpFile {
  std::string name;  // "rank_3"
  std::string bytes;
};

struct WrittenDumps {
  std::vector<DumpFile> files;
  double seen = 0;                    // when, in seconds since the epoch; 0 = unknown
  std::vector<std::string> left_out;  // sentences: what these files cannot say
};

/// Version 2.10. A rank of which nothing was recorded has no file, one that called nothing an empty
/// one. Left out are operations that torchfrtrace refuses to see, and sends and receives whose
/// other side cannot be told (messages.h). An error when no call was recorded.
base::Result<WrittenDumps> write_flight_recorder(const model::JobModel& job);

}  // namespace ddpdoctor::imports
