// SPDX-License-Identifier: Apache-2.0
// The frame of a generator or coroutine: cpython/genobject.h of 3.8 to 3.13,
// internal/pycore_interpframe_structs.h of 3.14 and 3.15.
#pragma once

#include "collector/stacks/python/objects.h"

namespace ddpdoctor::stacks {

/// The frame of a generator, coroutine or asynchronous generator; 0 = none (any more), or the
/// version's layout is unknown.
RemoteAddress generator_frame(PythonObjects& objects, RemoteAddress generator);

/// True if it has finished; false also if that is unknown.
bool generator_is_over(PythonObjects& objects, RemoteAddress generator);

}  // namespace ddpdoctor::stacks
