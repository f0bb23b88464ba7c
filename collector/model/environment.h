// SPDX-License-Identifier: Apache-2.0
// Which environment variables a model may contain: those that describe a job, and no secrets.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace ddpdoctor::model {

/// RANK, WORLD_SIZE, MASTER_*, TORCH*, NCCL_*, OMP_*, CUDA_*, SLURM_* and similar.
bool describes_job(std::string_view variable);

/// What may leave this machine: variables that describe the job, with secrets removed from their
/// values.
std::map<std::string, std::string> public_environment(
    const std::map<std::string, std::string>& environment);

}  // namespace ddpdoctor::model
