// SPDX-License-Identifier: Apache-2.0
// What MPI says when it ends a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// A rank called MPI_Abort, or a call of it failed and nobody handled the error.
struct MpiEnd {
  model::Rank rank = 0;
  std::string call = {};  // "MPI_Abort", else the function that failed, as MPI names it
  std::optional<std::int64_t> code{};  // of MPI_Abort
  std::string line = {};
};

/// From the logs, OpenMPI's words and MPICH's; one for each rank, its first.
std::vector<MpiEnd> mpi_ends_told(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
