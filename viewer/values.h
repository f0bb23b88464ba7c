// SPDX-License-Identifier: Apache-2.0
// The values of a deciding line, in words.
#pragma once

#include <string>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/model/job_model.h"
#include "collector/model/observed_values.h"

namespace ddpdoctor::viewer {

/// The values at a location: those read from the ranks, and the outcomes that follow from the lines
/// which the ranks reached. The decision comes first.
std::vector<model::ValueGroup> values_of(const model::JobModel& job,
                                         const detectors::Location& location);

/// A location's note, followed by the line's value on each rank: "this `if` decides who calls it:
/// True on rank 0, False on ranks 1-3".
std::string note_with_values(const model::JobModel& job, const detectors::Location& location);

}  // namespace ddpdoctor::viewer
