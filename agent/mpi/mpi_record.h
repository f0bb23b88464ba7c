// SPDX-License-Identifier: Apache-2.0
// Code before and after an MPI call.
#pragma once

#include <cstdint>

#include "agent/mpi/mpi_calls.h"
#include "agent/mpi/mpi_state.h"

namespace ddpdoctor::agent {

/// One MPI call on its thread's stack. `requests` is filled for calls that wait or test.
struct MpiFrame {
  static constexpr std::uint32_t kMost = 128;
  bool outermost;
  bool large;  // counts have 64 bits
  MpiKey key;
  std::uint32_t requests;
  Word request[kMost];
};

/// MPI calls made inside MPI are not the program's: only the outermost counts.
void mpi_entered(int id, bool large, const Word* arguments, const void* caller, MpiFrame& frame);
void mpi_left(int id, const Word* arguments, MpiFrame& frame, int result);

/// The outermost MPI call of this thread.
struct OpenMpiCall {
  std::uintptr_t frame = 0;  // address of its MpiFrame, 0 = none
  int id = 0;
  const void* caller = nullptr;
};
/// An exception or longjmp may leave MPI without an end: a call whose frame is not below the
/// caller's frame is over, and none is returned.
OpenMpiCall open_mpi_call();

}  // namespace ddpdoctor::agent
