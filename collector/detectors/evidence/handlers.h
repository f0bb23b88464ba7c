// SPDX-License-Identifier: Apache-2.0
// Ranks that an exception took away from what the others still do: they are in an except or finally
// block.
#pragma once

#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

/// True if `path` runs through an except block that `other` is not in, or through a finally while
/// `other` is still in its try. If that try contains a loop over data, the loop may also have ended
/// normally: then the finally proves nothing.
bool in_handler(const model::JobModel& job, const Path& path, const Path& other);

/// The innermost function of a framework that it calls only while it handles an exception:
/// Lightning's `on_exception` hooks and its `_interrupt`. nullptr if the thread is in none.
const model::Frame* in_exception_hook(const model::Thread& thread);

/// A `with` of a generator (contextlib) throws an exception into it: the thread is in the code that
/// the generator runs on exit.
bool throws_into_generator(const model::JobModel& job, const model::Thread& thread);

}  // namespace ddpdoctor::detectors
