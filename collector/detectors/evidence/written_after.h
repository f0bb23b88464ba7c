// SPDX-License-Identifier: Apache-2.0
// Whether a log continues after a traceback or a message: if it does, the program handled it.
#pragma once

#include "collector/detectors/evidence/tracebacks.h"

namespace ddpdoctor::detectors {

/// The rank wrote more lines after the traceback. If the lines name no rank, only lines that
/// resemble earlier ones count. False if the process of the rank was observed.
bool wrote_on(const model::JobModel& job, const Traceback& traceback);

/// More than a few lines without trouble follow the last line of NCCL or about trouble: the job
/// ran.
bool output_goes_on(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
