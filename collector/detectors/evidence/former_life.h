// SPDX-License-Identifier: Apache-2.0
// What ranks wrote before the launcher started the job again (torchrun --max-restarts): a life that
// only finds nobody to connect to may have failed because of the one before.
#pragma once

#include <vector>

#include "collector/detectors/evidence/tracebacks.h"

namespace ddpdoctor::detectors {

/// A rank found nobody to connect to: for a reason of its own, or since another one has ended or
/// is started again.
bool found_nobody(const Traceback& traceback);

/// Exceptions of former lives that no other rank's end explains, one for each rank and place.
std::vector<Traceback> exceptions_of_former_life(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
