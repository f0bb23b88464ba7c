// SPDX-License-Identifier: Apache-2.0
// torch's flight-recorder dumps (pickles and JSON, versions 2.0 to 2.10, NCCL and gloo), one for
// each rank → one JobModel. Whatever was the same on all ranks is summed up, so that 16,384 dumps
// fit: calls are kept around the places where ranks part, and the newest of each rank.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Whether the beginning of a file looks like a dump; `path` helps where it says little.
bool is_flight_recorder_dump(std::string_view head, std::string_view path);

/// Fills `bytes` with a file; yields when it was written, in seconds since the epoch.
using LoadFile = base::Result<double> (*)(const std::string& path, std::string& bytes);

/// Reads dumps of one job, as many at once as there are cores. The rank is taken from the file's
/// name ("nccl_trace_rank_3", "_dump_3"); where two processes that ran at one time have one number,
/// none of their dumps is used. A dump that cannot be used is told in `failures`; an error when
/// none can, and when one wants to execute something: such a folder is nobody's dumps.
base::Result<model::JobModel> read_flight_recorder(const std::vector<std::string>& paths,
                                                   LoadFile load,
                                                   std::vector<base::Error>& failures);

}  // namespace ddpdoctor::imports
