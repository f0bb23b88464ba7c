// SPDX-License-Identifier: Apache-2.0
// Marks in a JobModel for evidence that only a log gives.
#pragma once

#include <string_view>

namespace ddpdoctor::model {

/// End of Thread::capture if the source is a traceback in a log.
inline constexpr std::string_view kOfTraceback = "last traceback";

/// End of Thread::capture if that traceback is of an interrupt.
inline constexpr std::string_view kOfInterrupt = "an interrupt's last traceback";

/// WaitsOn::kind of a rank that a log shows not to be in the call of the others; its line is
/// unknown.
inline constexpr std::string_view kElsewhere = "elsewhere";

/// The fact with the number of calls that only a log shows.
inline constexpr std::string_view kCallsOfLog = "calls-of-log";

/// The fact with the names of tensors that a rank submitted and other ranks did not ("submitted"),
/// and the reverse ("lacking"): Horovod warns of both at once.
inline constexpr std::string_view kStalledTensors = "stalled-tensors";

/// The fact that a log names calls of the group `group` without numbers and without that group: the
/// numbers in the model only order them.
inline constexpr std::string_view kUncountedCalls = "uncounted-calls";

/// The fact that a rank exited before others timed out, and not because of a signal.
inline constexpr std::string_view kExitedByItself = "exited-by-itself";

/// The fact that the watchdog of a server ended this rank, which made no progress.
inline constexpr std::string_view kServerWatchdog = "server-watchdog";

/// The fact that a log names the ranks that did not reach a barrier: `barrier` (its name),
/// `line` (the message), `absent` and `came` ("0-2,5"), `first` (they meet there for the first
/// time).
inline constexpr std::string_view kRollCall = "roll-call";

/// The fact that frameworks print this number of `ranks` when they start.
inline constexpr std::string_view kToldWorld = "told-world";

/// The fact that a GPU ("gpu") is busy for so many "percent" of the time, as shown beside a dump.
inline constexpr std::string_view kGpuUse = "gpu-use";

}  // namespace ddpdoctor::model
