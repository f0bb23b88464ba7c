// SPDX-License-Identifier: Apache-2.0
// When the job was observed, for reports that outlive it.
#pragma once

#include <optional>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::viewer {

/// "2026-09-21T14:13:20" in UTC; an implausible time becomes the epoch.
std::string utc(double seconds);

/// Time of the newest snapshot; absent if times are not calendar times, as in dumps without a date.
std::optional<std::string> observed_at(const model::JobModel& job);

/// The end of a call that has not ended: the newest call plus the time without progress, in the
/// clock of the recorded calls.
double newest_moment(const model::JobModel& job);

}  // namespace ddpdoctor::viewer
