// SPDX-License-Identifier: Apache-2.0
// AArch64: a function that needs the frame pointer has saved it next to its return address; one
// that has not needs the link register, which is not in memory. The stack offers nothing to search:
// either the thread is stopped, or its stack ends there.
#include "collector/stacks/native/frame_pointer_solver.h"

namespace ddpdoctor::stacks {

std::optional<Unwound> solve_frame_pointer(Walk&, const UnsolvedFrame&) {
  return std::nullopt;
}

}  // namespace ddpdoctor::stacks
