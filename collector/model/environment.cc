// SPDX-License-Identifier: Apache-2.0
#include "collector/model/environment.h"

#include <algorithm>
#include <array>

#include "collector/model/secrets.h"

namespace ddpdoctor::model {
namespace {

using std::string_view;

constexpr std::array<string_view, 29> kPrefixes = {
    "MASTER_",     "TORCH",          "NCCL_",     "RCCL_",
    "GLOO_",       "OMP_",           "KMP_",      "MKL_",
    "OPENBLAS_",   "GOMP_",          "CUDA_",     "HIP_",
    "ROCR_",       "NVIDIA_VISIBLE", "SLURM_",    "OMPI_COMM_WORLD_",
    "PMI_",        "PMIX_RANK",      "MV2_COMM_", "UCX_",
    "FI_",         "GROUP_",         "ROLE_",     "LOCAL_",
    "ACCELERATE_", "DEEPSPEED_",     "PYTHON",    "XLA_",
    "DDPDOCTOR_"};

constexpr std::array<string_view, 10> kNames = {
    "RANK",       "WORLD_SIZE",      "NODE_RANK", "CROSS_RANK",
    "LD_PRELOAD", "LD_LIBRARY_PATH", "TMPDIR",    "TOKENIZERS_PARALLELISM",
    "CROSS_SIZE", "HYDRA_FULL_ERROR"};

}  // namespace

bool describes_job(std::string_view variable) {
  const bool named = std::find(kNames.begin(), kNames.end(), variable) != kNames.end();
  return !is_secret(variable) &&
         (named || std::any_of(kPrefixes.begin(), kPrefixes.end(), [variable](string_view prefix) {
            return variable.starts_with(prefix);
          }));
}

std::map<std::string, std::string> public_environment(
    const std::map<std::string, std::string>& environment) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : environment) {
    if (describes_job(name)) {
      out[name] = without_secrets(value);
    }
  }
  return out;
}

}  // namespace ddpdoctor::model
