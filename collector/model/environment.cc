// SPDX-License-Identifier: Apache-2.0
#include "collector/model/environment.h"

#include <algorithm>
#include <array>
#include <cctype>

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

std::string upper(string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return out;
}

}  // namespace

bool is_secret(std::string_view name) {
  constexpr std::array<string_view, 7> kParts = {"TOKEN",      "SECRET", "PASSWORD", "PASSWD",
                                                 "CREDENTIAL", "KEY",    "COOKIE"};
  const std::string wanted = upper(name);
  return !wanted.starts_with("TOKENIZER") &&
         std::any_of(kParts.begin(), kParts.end(), [&wanted](string_view part) {
           return wanted.find(part) != std::string::npos;
         });
}

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
  std::copy_if(environment.begin(), environment.end(), std::inserter(out, out.end()),
               [](const auto& entry) { return describes_job(entry.first); });
  return out;
}

std::vector<std::string> public_command(const std::vector<std::string>& command) {
  std::vector<std::string> out;
  bool hide_next = false;
  for (const std::string& word : command) {
    const bool option = word.starts_with("-");
    const std::size_t equals = word.find('=');
    const bool secret = is_secret(std::string_view(word).substr(0, equals)) &&
                        (option || (equals != std::string::npos && word.find('/') > equals));
    if (hide_next && !option) {
      out.emplace_back("…");
    } else if (secret && equals != std::string::npos) {
      out.push_back(word.substr(0, equals + 1) + "…");
    } else {
      out.push_back(word);
    }
    hide_next = option && secret && equals == std::string::npos;
  }
  return out;
}

}  // namespace ddpdoctor::model
