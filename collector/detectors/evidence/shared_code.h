// SPDX-License-Identifier: Apache-2.0
// Whether a traceback without a rank is of the program that the ranks run.
#pragma once

#include "collector/detectors/evidence/tracebacks.h"

namespace ddpdoctor::detectors {

/// A rank's stack has a user's function through which the traceback went, too. Tools of the job's
/// script, such as a downloader, have other functions.
bool is_code_of_ranks(const model::JobModel& job, const Traceback& traceback);

}  // namespace ddpdoctor::detectors
