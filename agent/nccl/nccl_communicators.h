// SPDX-License-Identifier: Apache-2.0
// Communicators of this process: by handle, with the name that all ranks give it.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/nccl/nccl_library.h"
#include "wire/layout.h"

namespace ddpdoctor::agent::nccl {

struct Known {
  std::atomic<Communicator> handle;  // null = free
  std::uint64_t id;                  // equal on all ranks; NCCL's own commHash from 2.26 on
  std::atomic<std::uint32_t> splits;
  std::atomic<std::uint32_t> shrinks;
  std::uint64_t magic;  // what names of grown communicators are made of, 0 = unknown
  std::uint16_t group;  // index + 1 in the ring
  bool ending;          // finalized: its end is recorded
  std::int32_t rank;
  std::int32_t size;
};

/// NCCL's hash of an id: the same mixing, so that our names are those of its logs and of RAS.
class Hash {
 public:
  Hash& eat(const void* bytes, std::size_t size);
  [[nodiscard]] std::uint64_t digest() const;

 private:
  std::uint64_t a_ = 1;
  std::uint64_t b_ = 1;
};

/// The communicator of a handle; one that was made behind our back is asked for rank and size and
/// gets a group without a name. Null when the table is full.
Known* communicator(wire::Ring& ring, const Library& library, Communicator handle);
/// Only if it is known.
Known* known_communicator(Communicator handle);

/// A group for a communicator that begins: its ranks find each other by `id`. Index + 1, 0 when the
/// table is full.
std::uint16_t new_group(wire::Ring& ring, const Library& library, std::uint64_t id, int rank,
                        int size);
/// A name for communicators that meet nobody outside of this process.
std::uint64_t new_local_id(const wire::Ring& ring);
/// One of them: the `device`-th of `devices`. It makes no rank of this process.
void remember_local(wire::Ring& ring, const Library& library, std::uint64_t id, Communicator handle,
                    int device, int devices);
/// Whether a group of this name exists.
bool known_by_name(const wire::Ring& ring, std::uint64_t id);
/// The handle of a group is known now.
Known* remember(wire::Ring& ring, Communicator handle, std::uint64_t id, std::uint16_t group,
                int rank, int size);
/// The handle is free for another communicator.
void forget(wire::Ring* ring, Communicator handle);
/// In a forked child: nothing of this is its own.
void forget_all();

}  // namespace ddpdoctor::agent::nccl
