// SPDX-License-Identifier: Apache-2.0
// Fixes for a rank that ended, by the signal or the exception that ended it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

std::string advice_on_end(const model::JobModel& job, const std::optional<model::Exit>& exit);

/// The fix for an exception whose message alone tells it; empty for others.
std::string_view advice_on_message(std::string_view exception);

}  // namespace ddpdoctor::detectors
