// SPDX-License-Identifier: Apache-2.0
// Fixes for a rank that ended, by the signal or the exception that ended it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

std::string advice_on_end(const model::JobModel& job, const std::optional<model::Exit>& exit);

/// The fix for an exception whose text names what is lacking: GPU memory, room on a disk, the
/// launcher's variables; or that CUDA reports too late. Empty for others.
std::string_view advice_by_text(std::string_view exception);

}  // namespace ddpdoctor::detectors
