// SPDX-License-Identifier: Apache-2.0
// Process groups of this process in its ring: found by the address of their backend.
#pragma once

#include <cstdint>

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// Index + 1 of a backend's group, 0 if there is none.
std::uint16_t known_group(const wire::Ring& ring, std::uint64_t backend);
/// The same, added if it is new; 0 if the table is full.
std::uint16_t group_index(wire::Ring& ring, std::uint64_t backend);
/// A new group with known name and backend (NCCL's communicators); 0 if the table is full.
std::uint16_t add_named_group(wire::Ring& ring, const char* backend_name, const char* name,
                              std::int32_t group_rank, std::int32_t size);
/// Writes torch's version into the ring once it is known.
void remember_version(wire::Ring& ring);

}  // namespace ddpdoctor::agent
