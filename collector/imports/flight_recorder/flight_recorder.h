// SPDX-License-Identifier: Apache-2.0
// Reads torch's flight-recorder dumps (pickles and JSON, versions 2.0 to 2.10, NCCL and gloo), one
// per rank, into one JobModel. Everything that is equal on all ranks is summarized, so that 16,384
// dumps fit into memory: calls are kept around the divergence of the ranks, and the newest of each
// rank.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// True if the beginning of a file looks like a dump; `path` helps if it is ambiguous.
bool is_flight_recorder_dump(std::string_view head, std::string_view path);

/// Reads a file into `bytes`; returns when it was written, in seconds since the epoch.
using LoadFile = base::Result<double> (*)(const std::string& path, std::string& bytes);

/// Reads the dumps of one job, as many at once as there are cores. The rank comes from the file
/// name ("nccl_trace_rank_3", "_dump_3"); if two processes that ran at the same time have the same
/// number, none of their dumps is used. An unusable dump is listed in `failures`. Fails if no dump
/// is usable, or if one tries to execute code: then the whole folder is not trusted.
base::Result<model::JobModel> read_flight_recorder(const std::vector<std::string>& paths,
                                                   LoadFile load,
                                                   std::vector<base::Error>& failures);

}  // namespace ddpdoctor::imports
