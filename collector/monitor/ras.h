// SPDX-License-Identifier: Apache-2.0
// A job whose NCCL answers questions about itself (RAS) is asked, twice and never again: equal
// answers are a hang, one alone says little.
#pragma once

#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::monitor {

/// Two answers in JSON, a second apart. Empty when no rank runs RAS, or when it does not answer:
/// coverage then says why.
std::vector<std::string> two_ras_answers(model::JobModel& job);

}  // namespace ddpdoctor::monitor
