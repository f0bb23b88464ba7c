// SPDX-License-Identifier: Apache-2.0
// mpi_calls.inc as a table. Handles and arguments are 64-bit words: integers stand in the lower
// half of their registers, whose upper half is anything.
#pragma once

#include <cstdint>

#include "wire/events.h"

namespace ddpdoctor::agent {

using Word = std::uint64_t;

/// What an MPI function means to the probe.
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

/// Where the arguments of a function stand, -1 = it has none; see mpi_calls.inc.
struct MpiCall {
  const char* name;  // with the P of the profiling interface
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
