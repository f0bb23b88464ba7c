// SPDX-License-Identifier: Apache-2.0
// What of a job was seen, and what was not and why.
#pragma once

#include <array>
#include <string_view>

#include "collector/model/building/build_model.h"

namespace ddpdoctor::model {

/// Why ranks have no process here, behind whom it is said of: one rank, several, or either.
inline constexpr std::array<std::string_view, 4> kReasonsNotHere = {
    "runs on another machine", "run on another machine",
    "no process of it was found on this machine", "only one process was asked for"};

/// Says it of the newest look; `job` must have its observations and world size. Ranks that should
/// run here and have no process are absent, not unobserved; ranks of other machines are unobserved.
Coverage coverage_of(const JobModel& job, const std::vector<Look>& looks);

}  // namespace ddpdoctor::model
