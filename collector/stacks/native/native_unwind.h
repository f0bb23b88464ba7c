// SPDX-License-Identifier: Apache-2.0
// From a thread's registers to its chain of program counters. Names come later, for all processes
// at once (symbols).
#pragma once

#include <string>
#include <vector>

#include "collector/stacks/native/cfi_expression.h"
#include "collector/stacks/target/target.h"

namespace ddpdoctor::stacks {

/// One frame, before names.
struct UnwoundFrame {
  RemoteAddress pc = 0;
  RemoteAddress cfa = 0;  // 0 = unknown
  bool exact = false;     // the pc is where the thread stands, not a return address
  bool inferred = false;  // found through a frame pointer that was inferred
};

/// Why unwinding ended.
enum class UnwindEnd {
  kComplete,
  kUnmapped,
  kNoCfi,
  kUnknownRegister,
  kUnreadable,
  kNoProgress,
  kTooDeep
};

/// A chain of frames, innermost first.
struct Unwound {
  std::vector<UnwoundFrame> frames;
  UnwindEnd end = UnwindEnd::kUnknownRegister;
  bool unproven = false;  // some frame is inferred
  int without_cfi = 0;    // steps by frame pointer through memory without call-frame information
};

/// What a walk needs: code and files of the target, and the thread's stack (a copy, or the live
/// memory).
struct Walk {
  Target& target;
  RemoteMemory& stack;
  int attempts = 64;  // walks the frame-pointer solver may still try
};

/// Walks from `registers`; `exact` as for the innermost frame.
Unwound unwind(Walk& walk, Registers registers, bool exact = true);

/// Why the stack is not whole, in words; empty when it is.
std::string problem_of(const Unwound& unwound, Target& target);

}  // namespace ddpdoctor::stacks
