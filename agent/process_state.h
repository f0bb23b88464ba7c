// SPDX-License-Identifier: Apache-2.0
// The little that must be known of this process before (or without) a ring.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

struct ProcessState {
  std::uint32_t team_threads = 0;  // threads that an OpenMP or BLAS library started in this process
  std::uint32_t parent_team =
      0;                  // pid of the ancestor that had such threads when it forked us, 0 = none
  std::uint32_t pid = 0;  // refreshed after fork
};

ProcessState& process_state();

}  // namespace ddpdoctor::agent
