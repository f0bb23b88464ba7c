// SPDX-License-Identifier: Apache-2.0
// Checks whether a log continues after a traceback: if it does, the program handled the exception.
#pragma once

#include "collector/detectors/evidence/tracebacks.h"

namespace ddpdoctor::detectors {

/// The rank wrote more lines after the traceback. If the lines name no rank, only lines that
/// resemble earlier ones count. False if the process of the rank was observed.
bool wrote_on(const model::JobModel& job, const Traceback& traceback);

}  // namespace ddpdoctor::detectors
