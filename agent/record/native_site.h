// SPDX-License-Identifier: Apache-2.0
// The call site in compiled code: the file and the return address in it. The collector finds names
// and lines.
#pragma once

#include <cstdint>

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// Index of the call site in the ring's sites (function "+0x…" = address in the file, line 0); 0 if
/// it is in a system library.
std::uint32_t native_site(wire::Ring& ring, const void* return_address);

/// Call in a forked child.
void forget_native_sites();

}  // namespace ddpdoctor::agent
