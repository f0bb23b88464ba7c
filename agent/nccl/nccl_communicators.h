// SPDX-License-Identifier: Apache-2.0
// The communicators of this process by handle, with names that are equal on all ranks.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/nccl/nccl_library.h"
#include "wire/layout.h"

namespace ddpdoctor::agent::nccl {

struct Known {
  std::atomic<Communicator> handle;  // null = free
  std::uint64_t id;                  // equal on all ranks; since 2.26 NCCL's own commHash
  std::atomic<std::uint32_t> splits;
  std::atomic<std::uint32_t> shrinks;
  std::uint64_t magic;  // basis for names of grown communicators, 0 = unknown
  std::uint16_t group;  // index + 1 in the ring
  bool ending;          // finalized: its end is being recorded
  std::int32_t rank;
  std::int32_t size;
};

/// NCCL's hash of an id: the same mixing function, so that our names match those in its logs and in
/// RAS.
class Hash {
 public:
  Hash& eat(const void* bytes, std::size_t size);
  [[nodiscard]] std::uint64_t digest() const;

 private:
  std::uint64_t a_ = 1;
  std::uint64_t b_ = 1;
};

/// The communicator of a handle; for one whose creation was not seen, queries rank and size and
/// makes a group without a name. Null if the table is full.
Known* communicator(wire::Ring& ring, const Library& library, Communicator handle);
/// The same, only if it is known.
Known* known_communicator(Communicator handle);

/// A group for a new communicator, whose ranks are matched by `id`. Index + 1, 0 if the table is
/// full.
std::uint16_t new_group(wire::Ring& ring, const Library& library, std::uint64_t id, int rank,
                        int size);
/// A name for communicators that are limited to this process.
std::uint64_t new_local_id(const wire::Ring& ring);
/// One of them: number `device` of `devices`. It does not make this process a rank.
void remember_local(wire::Ring& ring, const Library& library, std::uint64_t id, Communicator handle,
                    int device, int devices);
/// True if a group with this name exists.
bool known_by_name(const wire::Ring& ring, std::uint64_t id);
/// Records the handle of a group.
Known* remember(wire::Ring& ring, Communicator handle, std::uint64_t id, std::uint16_t group,
                int rank, int size);
/// The handle becomes free for another communicator.
void forget(wire::Ring* ring, Communicator handle);
/// In a forked child: it inherits none of this.
void forget_all();

}  // namespace ddpdoctor::agent::nccl
