// SPDX-License-Identifier: Apache-2.0
// AArch64: a function that needs the frame pointer has saved it beside its return address, and one
// that has not needs the link register, which lies nowhere in memory. There is nothing to search
// for on the stack: the thread is stopped, or its stack ends there.
#include "collector/stacks/native/frame_pointer_solver.h"

namespace ddpdoctor::stacks {

std::optional<Unwound> solve_frame_pointer(Walk&, const UnsolvedFrame&) {
  return std::nullopt;
}

}  // namespace ddpdoctor::stacks
