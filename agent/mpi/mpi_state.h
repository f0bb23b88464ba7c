// SPDX-License-Identifier: Apache-2.0
// The state that the MPI probe keeps between calls: communicators, requests, open calls.
#pragma once

#include <cstdint>

#include "agent/mpi/mpi_library.h"
#include "wire/layout.h"

namespace ddpdoctor::agent {

/// A call as identified in its slot; group 0 = none.
struct MpiKey {
  std::uint16_t group = 0;
  bool point_to_point = false;
  std::uint32_t sequence = 0;
  wire::Operation operation = wire::Operation::kUnknown;
};

/// Records the world and this process's rank in it, after MPI_Init.
void mpi_world_begins(wire::Ring& ring, const MpiLibrary& library);
/// Records a communicator made from `parent`; all its members give it the same name, from the
/// parent's name, `ordinal` and the first member.
void mpi_communicator_made(wire::Ring& ring, const MpiLibrary& library, Word parent, Word made,
                           char mark, std::uint32_t ordinal);
void mpi_communicator_freed(wire::Ring& ring, Word freed);

/// The call of an open request; group 0 = unknown.
MpiKey mpi_request(wire::Ring& ring, Word request);
/// Connects a request with its call. An earlier request with the same handle is over.
void remember_mpi_request(wire::Ring& ring, Word request, const MpiKey& key);
/// Records once that the call of a request has ended.
void mpi_request_ended(wire::Ring& ring, Word request);

/// Records the end of a call.
void mpi_ended(wire::Ring& ring, const MpiKey& key, bool failed);

/// The call that a persistent request makes each time it is started.
struct MpiTemplate {
  Word request = 0;
  Word communicator = 0;
  wire::Operation operation = wire::Operation::kUnknown;
  std::int64_t count = -1;
  std::uint8_t dtype = 255;
  std::int32_t peer = -1;
  std::uint32_t detail = 0;
};
void keep_mpi_template(const MpiTemplate& one);
/// Null if the request is not a recorded persistent one.
const MpiTemplate* mpi_template(Word request);
void drop_mpi_template(Word request);

}  // namespace ddpdoctor::agent
