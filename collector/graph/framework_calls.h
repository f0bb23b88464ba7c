// SPDX-License-Identifier: Apache-2.0
// Frameworks call collectives through their own functions and have named phases: tables with one
// row per function or folder.
#pragma once

#include <span>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// The operation of a framework's wrapper around torch.distributed, if the innermost frames are
/// those of such a wrapper (torch frames may be below it); empty = no such frame.
std::string_view wrapped_operation(std::span<const stacks::Frame> frames);

/// "generate", "forward", "backward", "prefill", "decode", "save": the phase of the innermost frame
/// in the table; empty = no such frame.
std::string_view phase_of(std::span<const stacks::Frame> frames);

}  // namespace ddpdoctor::graph
