// SPDX-License-Identifier: Apache-2.0
// A message after which the job continued: it recovered, handled the error, or another program
// wrote the line.
#pragma once

#include <vector>

#include "collector/diagnosis/explain_away.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::diagnosis {

/// Findings that rest on a log are only possible if steps follow the last line that they quote.
void doubt_what_was_overcome(std::vector<Judged>& findings, const model::JobModel& job);

}  // namespace ddpdoctor::diagnosis
