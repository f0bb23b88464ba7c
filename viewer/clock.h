// SPDX-License-Identifier: Apache-2.0
// When the job was observed, for reports that outlive it.
#pragma once

#include <optional>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::viewer {

/// "2026-09-21T14:13:20" in UTC; what is no time of this era is the beginning of time.
std::string utc(double seconds);

/// When the newest snapshot was taken; absent where the times are not those of a calendar, as in
/// dumps that do not say when they were made.
std::optional<std::string> observed_at(const model::JobModel& job);

/// Until when a call that has not ended lasts: the newest call and the time without progress, in
/// the seconds that calls are recorded in.
double newest_moment(const model::JobModel& job);

}  // namespace ddpdoctor::viewer
