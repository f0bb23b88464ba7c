// SPDX-License-Identifier: Apache-2.0
// Frameworks call collectives through functions of their own, and are in phases that have names:
// tables, one row for each function or folder.
#pragma once

#include <span>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// The operation that a framework's wrapper around torch.distributed stands for, when the innermost
/// frames are those of such a wrapper (below them may be torch); empty = no such frame.
std::string_view wrapped_operation(std::span<const stacks::Frame> frames);

/// "generate", "forward", "backward", "prefill", "decode", "save": what the innermost frame of the
/// table is part of; empty = no frame of it.
std::string_view phase_of(std::span<const stacks::Frame> frames);

}  // namespace ddpdoctor::graph
