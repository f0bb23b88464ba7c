// SPDX-License-Identifier: Apache-2.0
// Exits of children as their parents saw them (the only evidence of a SIGKILL), and which ones the
// launcher ended. After one rank fails, a launcher ends the others, sometimes with the same signal,
// and reaps them in any order: only the times of the signals show which rank failed by itself.
#pragma once

#include <map>
#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// Keyed by pid.
std::map<pid_t, Exit> child_ends(const std::vector<sources::Recording>& recordings);

/// Facts "cleaned-up": processes that were not exiting when their launcher ended them because the
/// job was over.
std::vector<Fact> cleaned_up(const std::vector<sources::Recording>& recordings);

}  // namespace ddpdoctor::model
