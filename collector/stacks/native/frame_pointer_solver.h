// SPDX-License-Identifier: Apache-2.0
// The kernel shows the stack pointer of a sleeping thread that is not stopped, but not rbp. For a
// frame that needs rbp (alloca, -O0, realigned stacks), rbp is found from the stack itself: the
// frame's return address must follow a call, preferably of exactly this function, and the whole
// stack must then unwind to its end.
#pragma once

#include <optional>

#include "collector/stacks/native/native_unwind.h"

namespace ddpdoctor::stacks {

/// The frame without a known rbp.
struct UnsolvedFrame {
  const Registers& registers;
  const CfiPlan& plan;
  LoadedObject object;
  RemoteAddress pc = 0;  // the pc for lookups: inside the function
  bool exact = false;
};

/// The walk from the frame on, with the rbp that explains the stack. `unproven` unless its call is
/// the only direct one and no other candidate below explains the stack equally well. Nothing if no
/// candidate leads to the thread's start.
std::optional<Unwound> solve_frame_pointer(Walk& walk, const UnsolvedFrame& frame);

/// The kind of instruction before a return address.
enum class CallBefore { kNone, kThisFunction, kOtherFunction, kIndirect };

/// Whether the instruction before `return_address` calls `function` (directly, through its PLT stub
/// or through the GOT).
CallBefore call_before(Target& target, RemoteAddress return_address, RemoteAddress function);

}  // namespace ddpdoctor::stacks
