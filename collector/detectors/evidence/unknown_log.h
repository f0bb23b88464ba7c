// SPDX-License-Identifier: Apache-2.0
// Logs in which ddpdoctor knows no message: their own words, for a reader who may know them.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/finding.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The first lines that report an error, up to three.
void quote_trouble(const model::JobModel& job, Finding& finding);

/// The last line of the only log, as its terminal showed it at last, without its prefix. Nothing if
/// there are several logs or it is empty.
std::optional<std::string> last_line_of_the_log(const model::JobModel& job);

/// The bar at the end of the only log, if it moved.
std::optional<std::string> moving_bar(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
