// SPDX-License-Identifier: Apache-2.0
// Unwinds a thread's registers to its chain of program counters. Names are resolved later, for all
// processes at once (symbols).
#pragma once

#include <string>
#include <vector>

#include "collector/stacks/native/cfi_expression.h"
#include "collector/stacks/target/target.h"

namespace ddpdoctor::stacks {

/// One frame without names.
struct UnwoundFrame {
  RemoteAddress pc = 0;
  RemoteAddress cfa = 0;  // 0 = unknown
  bool exact = false;     // the pc is the current instruction, not a return address
  bool inferred = false;  // found through an inferred frame pointer
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
  bool unproven = false;  // at least one frame is inferred
  int without_cfi = 0;    // steps by frame pointer through memory without call-frame information
};

/// The input of a walk: code and files of the target, and the thread's stack (a copy, or the live
/// memory).
struct Walk {
  Target& target;
  RemoteMemory& stack;
  int attempts = 64;  // number of walks that the frame-pointer solver may still try
};

/// Walks from `registers`; `exact` as for the innermost frame.
Unwound unwind(Walk& walk, Registers registers, bool exact = true);

/// Why the stack is incomplete, in words; empty if it is complete.
std::string problem_of(const Unwound& unwound, Target& target);

}  // namespace ddpdoctor::stacks
