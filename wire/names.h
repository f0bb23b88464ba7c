// SPDX-License-Identifier: Apache-2.0
// Names that both sides of the wire must spell alike.
#pragma once

namespace ddpdoctor::wire {

/// Folder in which every process under `ddpdoctor run` leaves its ring; absent = record nothing.
inline constexpr const char* kSpoolVariable = "DDPDOCTOR_SPOOL";
/// A ring is called PID-START.ring, START being the process's start in clock ticks since boot.
inline constexpr const char* kRingSuffix = ".ring";

}  // namespace ddpdoctor::wire
