// SPDX-License-Identifier: Apache-2.0
// mpi_calls.inc as a table. Handles and arguments are 64-bit words: an integer is in the lower half
// of its register, and the upper half is undefined.
#pragma once

#include <cstdint>

#include "wire/events.h"

namespace ddpdoctor::agent {

using Word = std::uint64_t;

/// The meaning of an MPI function for the probe.
enum class MpiKind : std::uint8_t {
  kCollective,
  kNonblocking,
  kPointToPoint,
  kPointToPointStart,
  kPersistent,
  kStart,
  kRequestFree,
  kWait,
  kWaitall,
  kWaitany,
  kWaitsome,
  kTest,
  kTestall,
  kTestany,
  kTestsome,
  kNewCommunicator,
  kNewCommunicatorOfGroup,
  kCommFree,
  kInit,
  kFinalize,
  kAbort
};

/// The argument positions of a function, -1 = it has none; see mpi_calls.inc.
struct MpiCall {
  const char* name;  // with the prefix P of the profiling interface
  MpiKind kind;
  wire::Operation operation;
  std::int8_t count;
  std::int8_t dtype;
  std::int8_t reduce_op;
  std::int8_t peer;
  std::int8_t communicator;
  std::int8_t tag;
  std::int8_t request;
  std::int8_t other_count;
  std::int8_t other_dtype;
  std::int8_t place;
};

inline constexpr int kMpiCalls = 78;
extern const MpiCall mpi_calls[kMpiCalls];

}  // namespace ddpdoctor::agent
