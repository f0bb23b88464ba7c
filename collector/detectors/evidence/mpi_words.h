// SPDX-License-Identifier: Apache-2.0
// Messages of MPI when it ends a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// A rank called MPI_Abort, or one of its calls failed and the error was not handled.
struct MpiEnd {
  model::Rank rank = 0;
  std::string call = {};               // "MPI_Abort", else the failed function by its MPI name
  std::optional<std::int64_t> code{};  // for MPI_Abort
  std::string line = {};
};

/// From logs with messages of OpenMPI and MPICH; the first one of each rank.
std::vector<MpiEnd> mpi_ends_told(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
