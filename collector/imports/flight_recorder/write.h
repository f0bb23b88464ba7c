// SPDX-License-Identifier: Apache-2.0
// Writes a JobModel as flight-recorder dumps in torch's format, one pickle per rank, for
// torchfrtrace and for our own reader. torchfrtrace cannot read torch's own dumps of gloo jobs,
// because these name no groups.
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
  double seen = 0;                    // time of the snapshot, seconds since the epoch; 0 = unknown
  std::vector<std::string> left_out;  // sentences about what these files cannot represent
};

/// Version 2.10. A rank without records has no file; one that made no call has an empty file. Omits
/// operations that torchfrtrace does not accept, and sends and receives with an unknown peer
/// (messages.h). Fails if no call was recorded.
base::Result<WrittenDumps> write_flight_recorder(const model::JobModel& job);

}  // namespace ddpdoctor::imports
