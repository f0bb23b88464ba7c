// SPDX-License-Identifier: Apache-2.0
// Whether a log continues after a traceback: the exception was handled, or it ended the program.
#pragma once

#include "collector/detectors/evidence/tracebacks.h"

namespace ddpdoctor::detectors {

/// By the log alone: the rank wrote lines of its own after the traceback and the message in it.
/// Where lines name no rank, only lines that are like earlier ones count: steps go on.
bool wrote_on(const model::JobModel& job, const Traceback& traceback);

}  // namespace ddpdoctor::detectors
