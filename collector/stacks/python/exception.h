// SPDX-License-Identifier: Apache-2.0
// The exception that a thread handles at the moment (sys.exc_info() of that thread), and the last
// one that ended a program (sys.last_value): which, and where it was raised.
#pragma once

#include <functional>
#include <optional>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::stacks {

/// Turns a code object and a byte offset into a place.
using CodeDecoder = std::function<std::optional<Frame>(RemoteAddress code, int lasti)>;

/// The exception object that the thread is in an except or finally block for; 0 = none, or this
/// version's thread states are not known.
RemoteAddress handled_exception(PythonObjects& objects, RemoteAddress thread_state);

/// sys.last_value: what was printed when the program failed; 0 = none.
RemoteAddress printed_exception(PythonObjects& objects);

/// Type, text and traceback; nothing when there is no exception at this address (any more).
std::optional<RaisedException> describe_exception(PythonObjects& objects, RemoteAddress exception,
                                                  const CodeDecoder& decode);

}  // namespace ddpdoctor::stacks
