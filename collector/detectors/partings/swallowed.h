// SPDX-License-Identifier: Apache-2.0
// An exception that a rank printed and went on after: what stood behind the raising line in the
// same try was left out, on this rank alone.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// The newest exception of the odd rank (of either side in a tie) that passed the very try in which
/// the others now wait, and that those did not print too; nothing when there is none.
std::optional<Traceback> swallowed_exception(const graph::Examination& examination,
                                             const Parting& parting);

/// A thread of the rank ended by an exception, and its main thread waits for something in its own
/// process: what that thread would have given it.
bool misses_its_thread(const graph::Examination& examination, model::Rank rank);

/// The call of the others stands in a try whose except lets the program go on, or in `with
/// suppress(…)`: an exception there leaves the call out. "a try", or the with and its place;
/// nothing where neither is.
std::optional<std::string> what_may_swallow(const model::JobModel& job, const Path& path);

}  // namespace ddpdoctor::detectors
