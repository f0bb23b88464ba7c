// SPDX-License-Identifier: Apache-2.0
// Whether what was read of a process shows where in the program it is. If not, the rank counts as
// unobserved: a stack cut off below the call does not show that the rank is not in the call.
#pragma once

#include "collector/graph/history.h"
#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// A thread of which only its sleep is known, in a rank without records.
bool says_nothing(const History& history, const model::Process& process,
                  const model::Thread& thread);

/// A dump with only the innermost frames of each thread, and none that says what it waits for.
bool shows_no_place(const model::Process& process, const Standing& standing);

}  // namespace ddpdoctor::graph
