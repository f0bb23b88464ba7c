// SPDX-License-Identifier: Apache-2.0
// The rank and number of ranks in this process's environment.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

struct Claim {
  std::int32_t rank = -1;  // -1 = none
  std::int32_t local_rank = -1;
  std::int32_t world_size = -1;
  const char* variable = nullptr;  // name of the rank's variable, as "RANK="
};

/// A number with at most seven digits; -1 if the variable has none.
std::int32_t number_from_environment(const char* name);

/// From torch's launchers, else from Lightning's LOCAL_RANK on the first node, else from mpirun and
/// srun if there are several tasks.
Claim claim_of_environment();

}  // namespace ddpdoctor::agent
