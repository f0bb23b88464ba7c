// SPDX-License-Identifier: Apache-2.0
// The place of a call in compiled code: the file and the address in it that control returns to.
// Names and lines are the collector's work.
#pragma once

#include <cstdint>

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// Index of the place in the ring's sites (function "+0x…" = address in the file, line 0); 0 when
/// it is in a library of the system.
std::uint32_t native_site(wire::Ring& ring, const void* return_address);

/// In a forked child.
void forget_native_sites();

}  // namespace ddpdoctor::agent
