// SPDX-License-Identifier: Apache-2.0
// The contexts that a running frame has entered: the interpreter keeps the `__exit__` of each one
// on the frame's value stack until its `with` ends.
#pragma once

#include <vector>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/python/reader.h"

namespace ddpdoctor::stacks {

/// The objects of `with` statements, outermost first; up to 3.10 also the one that is being
/// entered. May end with contexts that were left already. Empty from 3.14 on, which keeps functions
/// there instead of methods.
std::vector<RemoteAddress> entered_contexts(PythonObjects& objects, const RawPythonFrame& frame);

/// The contexts of a contextlib.ExitStack, in the order in which they were entered; none for other
/// objects. `stack` must be an ExitStack.
std::vector<RemoteAddress> contexts_of_stack(PythonObjects& objects, RemoteAddress stack);

}  // namespace ddpdoctor::stacks
