// SPDX-License-Identifier: Apache-2.0
// Frameworks call collectives through their own functions and have named phases: tables with one
// row per function or folder.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// A call of a framework's own function that makes a collective.
struct WrappedCall {
  std::string_view operation;             // empty = the innermost frames are of no such function
  const stacks::Frame* called = nullptr;  // the outermost of the framework's functions
};

/// The call if the innermost frames are those of a framework's wrapper around torch.distributed,
/// MPI or NCCL (torch frames may be below it).
WrappedCall wrapped_call(std::span<const stacks::Frame> frames);

/// The user's frames, or the framework's if there are none; those up to the wrapper are left out
/// unless they are all. `wrapper`: WrappedCall::called, may be nullptr.
std::vector<const stacks::Frame*> callers_of_wrapper(const model::Thread& thread,
                                                     const stacks::Frame* wrapper);

/// "generate", "forward", "backward", "prefill", "decode", "save": the phase of the innermost frame
/// in the table; empty = no such frame.
std::string_view phase_of(std::span<const stacks::Frame> frames);

}  // namespace ddpdoctor::graph
