// SPDX-License-Identifier: Apache-2.0
// An exception that a rank printed before it continued: on this rank alone, the code after the
// raising line in the same try was skipped.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// The newest exception of the odd rank (of either side if they are of equal size) that passed the
/// try in which the others now wait, and that those did not print, too; nothing if there is none.
std::optional<Traceback> swallowed_exception(const graph::Examination& examination,
                                             const Parting& parting);

/// A thread of the rank ended by an exception, and its main thread waits for something in its own
/// process that this thread would have delivered.
bool misses_its_thread(const graph::Examination& examination, model::Rank rank);

/// The call of the others is in a try whose except clause lets the program continue, or in `with
/// suppress(…)`: an exception there skips the call. The sentence that names this line, for the end
/// of a fix; nothing if there is no such line.
std::optional<std::string> or_swallowed(const model::JobModel& job, const Path& path);

}  // namespace ddpdoctor::detectors
