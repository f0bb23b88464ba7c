// SPDX-License-Identifier: Apache-2.0
// Names that the agent and the collector must spell the same.
#pragma once

namespace ddpdoctor::wire {

/// Folder in which every process under `ddpdoctor run` leaves its ring; if unset, nothing is
/// recorded.
inline constexpr const char* kSpoolVariable = "DDPDOCTOR_SPOOL";
/// A ring is named PID-START.ring; START is the start time of the process in clock ticks since
/// boot.
inline constexpr const char* kRingSuffix = ".ring";

}  // namespace ddpdoctor::wire
