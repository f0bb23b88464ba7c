// SPDX-License-Identifier: Apache-2.0
// Makes the file behind a ring: preallocated, so that a full disk cannot end the rank by SIGBUS,
// and mapped; no descriptor stays open.
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// The mapped ring with its header filled, or nullptr: then this process is simply not recorded.
wire::Ring* make_ring_file(const char* folder);

/// The rank in another process's ring, -1 when there is no such ring or it names none.
std::int32_t rank_in_ring_file(const char* folder, pid_t pid, std::uint64_t start_ticks);

}  // namespace ddpdoctor::agent
