// SPDX-License-Identifier: Apache-2.0
// What the user's line calls where a library makes the collective: trainer.save_checkpoint(), not
// barrier.
#pragma once

#include <string>

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// "trainer.save_checkpoint()", as the side's line says it; empty where the line names the
/// collective itself, has several calls and no column tells which, or is not known.
std::string user_call(const model::JobModel& job, const Side& side);

/// "trainer.save_checkpoint() (it calls barrier)", else the operation.
std::string call_in_words(const model::JobModel& job, const Side& side);

}  // namespace ddpdoctor::detectors
