// SPDX-License-Identifier: Apache-2.0
// Fixes for a rank that ended, by the signal that ended it.
#pragma once

#include <optional>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

std::string advice_on_end(const model::JobModel& job, const std::optional<model::Exit>& exit);

}  // namespace ddpdoctor::detectors
