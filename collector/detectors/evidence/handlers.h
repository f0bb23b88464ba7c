// SPDX-License-Identifier: Apache-2.0
// Ranks that an exception has led out of what the others still do: they stand in an except or a
// finally.
#pragma once

#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

/// True when `path` runs through an except block that `other` is not in, or through a finally while
/// `other` is still in its try. A loop over data in that try may also have ended by itself: then
/// the finally says nothing.
bool in_handler(const model::JobModel& job, const Path& path, const Path& other);

/// `with` of a generator (contextlib) throws an exception into it: the thread stands in what that
/// generator does on the way out.
bool throws_into_generator(const model::JobModel& job, const model::Thread& thread);

}  // namespace ddpdoctor::detectors
