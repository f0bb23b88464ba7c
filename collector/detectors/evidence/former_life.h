// SPDX-License-Identifier: Apache-2.0
// What ranks wrote before the launcher restarted the job (torchrun --max-restarts): an attempt that
// only fails to connect may have failed because of the previous one.
#pragma once

#include <vector>

#include "collector/detectors/evidence/tracebacks.h"

namespace ddpdoctor::detectors {

/// A rank could not connect: for its own reasons, or because another rank has exited or is being
/// restarted.
bool found_nobody(const Traceback& traceback);

/// Exceptions of previous attempts that no other rank's exit explains, one per rank and line.
std::vector<Traceback> exceptions_of_former_life(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
