// SPDX-License-Identifier: Apache-2.0
// What was observed of a job, what was not, and why.
#pragma once

#include <array>
#include <string_view>

#include "collector/model/building/build_model.h"

namespace ddpdoctor::model {

/// Why ranks have no process here; each phrase follows "rank 1", "ranks 1-2" or either.
inline constexpr std::array<std::string_view, 4> kReasonsNotHere = {
    "runs on another machine", "run on another machine",
    "no process of it was found on this machine", "only one process was asked for"};

/// Describes the newest snapshot; `job` must have its observations and world size. Ranks that
/// should run here but have no process are absent; ranks of other machines are unobserved.
Coverage coverage_of(const JobModel& job, const std::vector<Look>& looks);

}  // namespace ddpdoctor::model
