// SPDX-License-Identifier: Apache-2.0
// A sleeping thread that is not stopped shows its stack pointer but not rbp. A frame that needs rbp
// (alloca, -O0, realigned stacks) is solved from the stack itself: the return address of the frame
// must follow a call, best one that calls exactly this function, and the whole stack must then
// unwind to its end.
#pragma once

#include <optional>

#include "collector/stacks/native/native_unwind.h"

namespace ddpdoctor::stacks {

/// The frame that lacks rbp.
struct UnsolvedFrame {
  const Registers& registers;
  const CfiPlan& plan;
  LoadedObject object;
  RemoteAddress pc = 0;  // looked-up pc: inside the function
  bool exact = false;
};

/// The walk from the frame on, with the rbp that explains the stack. `unproven` unless it is the
/// only direct caller and no other candidate below it explains the stack as well. Nothing when no
/// candidate leads to the thread's start.
std::optional<Unwound> solve_frame_pointer(Walk& walk, const UnsolvedFrame& frame);

/// What stands before a return address.
enum class CallBefore { kNone, kThisFunction, kOtherFunction, kIndirect };

/// Whether the instruction before `return_address` calls `function` (directly, through its PLT stub
/// or through the GOT).
CallBefore call_before(Target& target, RemoteAddress return_address, RemoteAddress function);

}  // namespace ddpdoctor::stacks
