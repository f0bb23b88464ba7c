// SPDX-License-Identifier: Apache-2.0
// asyncio inside a target: what a task awaits, and failed tasks whose result was never retrieved.
// The coroutines of a waiting task are on no thread's stack.
#pragma once

#include <vector>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/python/reader.h"

namespace ddpdoctor::stacks {

/// The frames of the coroutines that `task` (an asyncio.Task) waits in, innermost first; those of a
/// task that it awaits precede its own. Empty if it is not a task, or the version's layout is
/// unknown (3.14).
RawPythonStack awaiting_frames(PythonObjects& objects, RemoteAddress task);

/// The exception of a finished task whose result was never retrieved; 0 = none or unknown.
RemoteAddress lost_exception(PythonObjects& objects);

}  // namespace ddpdoctor::stacks
