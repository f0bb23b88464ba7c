// SPDX-License-Identifier: Apache-2.0
// Reads what torchfrtrace prints of flight-recorder dumps that the user no longer has.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// "Not all ranks joining collective, sequence number: 7" and the lines below it, as calls: of the
/// ranks that joined, and the previous call of the missing ones.
void read_analysis_text(std::string_view text, model::JobModel& job);

}  // namespace ddpdoctor::imports
