// SPDX-License-Identifier: Apache-2.0
// Communicators as groups of the ring. Members must give a communicator the same name without
// communicating: the parent's name, the number of collectives the parent had seen, and the first
// member. MPI functions are called only here, never while an operation is recorded.
#include <cstring>

#include "agent/mpi/mpi_state.h"
#include "agent/record/decimal.h"
#include "agent/record/group_table.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

constexpr char kWorldName[] = "MPI_COMM_WORLD";

std::uint16_t add(wire::Ring& ring, const MpiLibrary& library, Word communicator,
                  const char* name) {
  int rank = -1;
  int size = -1;
  if (library.ask.rank(communicator, &rank) != 0 || library.ask.size(communicator, &size) != 0) {
    return 0;
  }
  mpi_communicator_freed(ring, communicator);  // the handle is reused
  const std::uint16_t index = group_index(ring, communicator);
  if (index == 0) {
    ring.header.lost.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  wire::Group& group = ring.group[index - 1];
  memcpy(group.backend_name, "mpi", 4);
  group.group_rank = rank;
  group.size = size;
  strncpy(group.name, name, sizeof group.name - 1);
  return index;
}

/// Rank in the parent of the new communicator's rank 0; -1 if MPI does not provide it.
int first_member(const MpiLibrary& library, Word parent, Word made) {
  Word of_parent = 0;
  Word of_made = 0;
  const int zero = 0;
  int first = -1;
  if (library.ask.group(parent, &of_parent) != 0) {
    return -1;
  }
  if (library.ask.group(made, &of_made) == 0) {
    if (library.ask.translate(of_made, 1, &zero, of_parent, &first) != 0) {
      first = -1;
    }
    library.ask.free_group(&of_made);
  }
  library.ask.free_group(&of_parent);
  return first;
}

}  // namespace

void mpi_world_begins(wire::Ring& ring, const MpiLibrary& library) {
  const std::uint16_t index = add(ring, library, library.world, kWorldName);
  if (index == 0) {
    return;
  }
  const wire::Group& group = ring.group[index - 1];
  // Lightning tests for MPI by importing mpi4py: each of its processes becomes the only rank of its
  // own world, which says nothing about the job.
  if (ring.header.rank < 0 && group.size > 1) {
    ring.header.rank = group.group_rank;
    ring.header.world_size = group.size;
  }
  record(ring, {.kind = wire::EventKind::kGroupCreated,
                .site = call_site(ring),
                .group = index,
                .count = group.size,
                .peer = group.group_rank});
}

void mpi_communicator_made(wire::Ring& ring, const MpiLibrary& library, Word parent, Word made,
                           char mark, std::uint32_t ordinal) {
  const std::uint16_t of_parent = known_group(ring, parent);
  if (made == library.null_communicator || made == 0 || of_parent == 0) {
    return;
  }
  const int first = first_member(library, parent, made);
  const std::size_t length = strnlen(ring.group[of_parent - 1].name, sizeof(wire::Group::name));
  constexpr std::size_t kAdded = 24;
  if (first < 0 || length + kAdded > sizeof(wire::Group::name)) {
    return;
  }
  char name[sizeof(wire::Group::name)];
  memcpy(name, ring.group[of_parent - 1].name, length);
  char* at = name + length;
  *at++ = mark;
  at = put_decimal(at, ordinal);
  *at++ = ':';
  at = put_decimal(at, first);
  *at = 0;
  const std::uint16_t index = add(ring, library, made, name);
  if (index != 0) {
    record(ring, {.kind = wire::EventKind::kGroupCreated,
                  .site = call_site(ring),
                  .group = index,
                  .count = ring.group[index - 1].size,
                  .peer = ring.group[index - 1].group_rank});
  }
}

void mpi_communicator_freed(wire::Ring& ring, Word freed) {
  const std::uint16_t index = known_group(ring, freed);
  if (index != 0) {
    ring.group[index - 1].backend = 0;
  }
}

}  // namespace ddpdoctor::agent
