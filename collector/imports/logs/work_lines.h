// SPDX-License-Identifier: Apache-2.0
// What ranks that were not waiting wrote while other ranks timed out: steps that continued, a phase
// that the program announced as long, the last message.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Adds the facts "progress-line" (its steps continued after a rank had timed out),
/// "announced-work" and "last-message" (of each rank, and of the lines that name none), if a rank
/// timed out.
void read_work_lines(std::string_view text, model::JobModel& job);

}  // namespace ddpdoctor::imports
