// SPDX-License-Identifier: Apache-2.0
// The few facts about this process that are needed before (or without) a ring.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

struct ProcessState {
  std::uint32_t team_threads = 0;  // threads that an OpenMP or BLAS library started in this process
  std::uint32_t parent_team =
      0;  // pid of the ancestor that had such threads when it forked this process, 0 = none
  std::uint32_t pid = 0;            // refreshed after fork
  std::uint32_t cuda_contexts = 0;  // bit per device
  // Pid of the ancestor that used CUDA before it forked this process.
  std::uint32_t cuda_before_fork = 0;
  std::int32_t claimed_rank = -1;  // rank in the environment at the start
  bool forked = false;             // created by fork, without exec since
  bool cuda_started = false;
  bool cuda_fork_told = false;
  const char* no_descriptor_for = nullptr;  // a call that failed when there was no ring yet
};

ProcessState& process_state();

/// This process was created by fork, or by a bare clone that runs no handlers: resets what belonged
/// to the parent.
void become_a_child();

}  // namespace ddpdoctor::agent
