// SPDX-License-Identifier: Apache-2.0
// asyncio inside a target: what a task awaits, and tasks that failed without anybody noticing. The
// coroutines of a task that waits are on no thread's stack.
#pragma once

#include <vector>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/python/reader.h"

namespace ddpdoctor::stacks {

/// The frames of the coroutines that `task` (an asyncio.Task) waits in, innermost first; those of a
/// task that it awaits come before its own. Empty when it is no task, or the version's layout is
/// not known (3.14).
RawPythonStack awaiting_frames(PythonObjects& objects, RemoteAddress task);

/// The exception of a finished task that nobody has asked for its result; 0 = none, or unknown.
RemoteAddress lost_exception(PythonObjects& objects);

}  // namespace ddpdoctor::stacks
