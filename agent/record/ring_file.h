// SPDX-License-Identifier: Apache-2.0
// Makes the file behind a ring: preallocated, so that a full disk cannot end the rank by SIGBUS,
// and mapped; no descriptor stays open.
#pragma once

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// The mapped ring with its header filled, or nullptr: then this process is simply not recorded.
wire::Ring* make_ring_file(const char* folder);

/// What a forked child inherits and its ring must say.
void inherit_across_fork();

}  // namespace ddpdoctor::agent
