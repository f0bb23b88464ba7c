// SPDX-License-Identifier: Apache-2.0
// The exception that a thread is handling (sys.exc_info() of that thread) and the last one that
// ended a program (sys.last_value): its type and where it was raised.
#pragma once

#include <functional>
#include <optional>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::stacks {

/// Converts a code object and a byte offset to a frame.
using CodeDecoder = std::function<std::optional<Frame>(RemoteAddress code, int lasti)>;

/// The exception of the thread's current except or finally block; 0 = none, or the layout of this
/// version's thread states is unknown.
RemoteAddress handled_exception(PythonObjects& objects, RemoteAddress thread_state);

/// sys.last_value: the exception printed when the program failed; 0 = none.
RemoteAddress printed_exception(PythonObjects& objects);

/// Type, text and traceback; nothing if there is no exception at this address (any more).
std::optional<RaisedException> describe_exception(PythonObjects& objects, RemoteAddress exception,
                                                  const CodeDecoder& decode);

}  // namespace ddpdoctor::stacks
