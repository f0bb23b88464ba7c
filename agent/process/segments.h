// SPDX-License-Identifier: Apache-2.0
// Maps files of /dev/shm to rows of the ring's segment table, so that a mapping is recorded without
// looking up its name.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// Inode behind a descriptor, 0 if it cannot be determined.
std::uint64_t inode_of(int descriptor);

/// Assigns the row to this file, whatever its previous file was.
void give_row(wire::Ring& ring, std::uint32_t row, std::uint64_t inode);

/// The row of this file, kSegments if there is none.
std::uint32_t row_of(wire::Ring& ring, std::uint64_t inode);

/// Call when shm_open returned a descriptor of an existing segment to this thread.
void remember_opened(int descriptor, const char* name);

/// Its name at that time, without the slash; empty if this thread's newest segment was another
/// file.
const char* opened_name(int descriptor, std::uint64_t inode);

}  // namespace ddpdoctor::agent
