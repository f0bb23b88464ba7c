// SPDX-License-Identifier: Apache-2.0
// The function on the user's line if a library makes the collective: trainer.save_checkpoint(), not
// barrier.
#pragma once

#include <string>

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// "trainer.save_checkpoint()", as written on the side's line; empty if the line names the
/// collective itself, has several calls without columns, or is unknown.
std::string user_call(const model::JobModel& job, const Side& side);

/// "trainer.save_checkpoint() (it calls barrier)"; the operation alone if the other side makes its
/// call from the same line, or if the line does not name a call.
std::string call_in_words(const model::JobModel& job, const Side& side, const Side& other);

}  // namespace ddpdoctor::detectors
