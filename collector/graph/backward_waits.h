// SPDX-License-Identifier: Apache-2.0
// What a thread in backward() waits for: autograd's own threads run the hooks, the reducer and
// recomputed forwards.
#pragma once

#include <optional>
#include <span>

#include "collector/graph/standing.h"

namespace ddpdoctor::graph {

/// The activity of a thread in backward(); nothing if `frames`, those below the user's innermost
/// line, are not in it or it computes. It waits for other ranks if the reducer or a Work is on its
/// stack or on that of autograd's thread, or if it sleeps while no kernel runs.
std::optional<Activity> wait_in_backward(const model::JobModel& job,
                                         std::span<const stacks::Frame> frames,
                                         const model::Process& process,
                                         const model::Thread& thread);

}  // namespace ddpdoctor::graph
