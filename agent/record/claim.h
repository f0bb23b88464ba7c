// SPDX-License-Identifier: Apache-2.0
// The rank that this process's environment names, and how many there are.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

struct Claim {
  std::int32_t rank = -1;  // -1 = none
  std::int32_t local_rank = -1;
  std::int32_t world_size = -1;
  const char* variable = nullptr;  // that names the rank, as "RANK="
};

/// A number of seven digits at most; -1 when the variable has none.
std::int32_t number_from_environment(const char* name);

/// As a launcher of torch's sets it, else Lightning's LOCAL_RANK of the first node, else what
/// mpirun and srun give to each of several tasks.
Claim claim_of_environment();

}  // namespace ddpdoctor::agent
