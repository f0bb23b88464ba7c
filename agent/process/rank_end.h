// SPDX-License-Identifier: Apache-2.0
// A rank that exits before anything was recorded: its exit must leave a ring, but exits of the
// programs it starts, which inherit its RANK, must not.
#pragma once

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// Remembers the rank in the environment: at the start, and in a forked child.
void remember_claim();

/// The ring of a process that is about to exit. Created now only for a Python process that is a
/// rank according to its environment; less than a microsecond for processes without a rank.
wire::Ring* ring_at_the_end();

}  // namespace ddpdoctor::agent
