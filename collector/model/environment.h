// SPDX-License-Identifier: Apache-2.0
// Which environment variables belong into a model: those a job is described by, and no secrets.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::model {

/// RANK, WORLD_SIZE, MASTER_*, TORCH*, NCCL_*, OMP_*, CUDA_*, SLURM_* and their like.
bool describes_job(std::string_view variable);

/// The name looks as if the value were a secret: TOKEN, SECRET, PASSWORD, KEY, CREDENTIAL.
bool is_secret(std::string_view name);

/// What may leave this machine.
std::map<std::string, std::string> public_environment(
    const std::map<std::string, std::string>& environment);

/// Command words with the values of options such as --hf-token replaced by "…".
std::vector<std::string> public_command(const std::vector<std::string>& command);

}  // namespace ddpdoctor::model
