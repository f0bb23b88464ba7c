// SPDX-License-Identifier: Apache-2.0
// Which row of the ring's table of segments is about which file of /dev/shm, so that a mapping is
// told without a look-up of its name.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// Inode of what a descriptor stands for, 0 when it cannot be asked.
std::uint64_t inode_of(int descriptor);

/// The row is about this file from now on; whatever it was about before.
void give_row(wire::Ring& ring, std::uint32_t row, std::uint64_t inode);

/// The row about this file, kSegments when there is none.
std::uint32_t row_of(wire::Ring& ring, std::uint64_t inode);

/// shm_open gave this thread a descriptor of a segment that exists already.
void remember_opened(int descriptor, const char* name);

/// The name it had, without its slash; empty when this thread's newest was another file.
const char* opened_name(int descriptor, std::uint64_t inode);

}  // namespace ddpdoctor::agent
