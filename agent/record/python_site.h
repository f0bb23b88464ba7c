// SPDX-License-Identifier: Apache-2.0
// The Python line that led here, read from the interpreter's own frames: no GIL, no allocation, off
// when the version is unknown.
#pragma once

#include <cstdint>

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// Index of the innermost frame of the calling thread in the ring's sites, 0 when there is no
/// Python here.
std::uint32_t call_site(wire::Ring& ring);

/// Python is being finalised, or has been. Reads two words of the interpreter: safe in a signal
/// handler.
bool interpreter_is_ending();

/// In a forked child: sites must be written anew into its own ring.
void forget_sites();

}  // namespace ddpdoctor::agent
