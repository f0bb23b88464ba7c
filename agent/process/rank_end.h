// SPDX-License-Identifier: Apache-2.0
// A rank that leaves before anything of it was recorded: its end must leave a ring, the ends of the
// programs it starts, which inherit its RANK, must not.
#pragma once

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// Remembers which rank the environment names: at the start, and in a forked child.
void remember_claim();

/// The ring of a process that is about to end. Made now for a Python process that is a rank by its
/// environment, for nobody else: less than a microsecond for what carries no rank.
wire::Ring* ring_at_the_end();

}  // namespace ddpdoctor::agent
