// SPDX-License-Identifier: Apache-2.0
// The current Python line, read from the interpreter's own frames: without GIL or allocation;
// disabled if the version is unknown.
#pragma once

#include <cstdint>

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// Index of the calling thread's innermost frame in the ring's sites, 0 if there is no Python
/// frame.
std::uint32_t call_site(wire::Ring& ring);

/// Python is being finalized, or has been. Reads two words of the interpreter: safe in a signal
/// handler.
bool interpreter_is_ending();

/// Call in a forked child: its own ring needs its own sites.
void forget_sites();

}  // namespace ddpdoctor::agent
