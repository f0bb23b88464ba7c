// SPDX-License-Identifier: Apache-2.0
// Creates the file of a ring: preallocated, so that a full disk cannot end the rank by SIGBUS, and
// mapped; no descriptor stays open.
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// The mapped ring with a filled header, or nullptr: then this process is not recorded.
wire::Ring* make_ring_file(const char* folder);

/// The rank in another process's ring, -1 if there is no such ring or it has no rank.
std::int32_t rank_in_ring_file(const char* folder, pid_t pid, std::uint64_t start_ticks);

}  // namespace ddpdoctor::agent
